"""Records, weights, texts, tables and SavedModels."""

import functools
import gzip
import json
import pathlib
import shutil
import struct

import tensorflow as tf

from common.formats import checksums
from tests.bad_inputs.case import Case, pipe

BARE = ("run_pretraining_bare", "doctor_bare")


def _frame(record: bytes, length: int | None = None) -> bytes:
    """A frame whose length has a right checksum."""
    start = struct.pack("<Q", len(record) if length is None else length)
    return b"".join(
        (
            start,
            struct.pack("<I", checksums.masked_crc32c(start)),
            record,
            struct.pack("<I", checksums.masked_crc32c(record)),
        )
    )


def _example(**features) -> bytes:
    made = tf.train.Example()
    for name, values in features.items():
        made.features.feature[name].int64_list.value.extend(values)
    return _frame(made.SerializeToString())


RECORDS = {
    **{
        f"a length of 2**{bits}": (
            _frame(b"abc", 1 << bits),
            "record 0",
        )
        for bits in (31, 32, 35, 40, 48, 62, 63)
    },
    "a length of -1": (_frame(b"abc", 2**64 - 1), "record 0"),
    "a length of -16": (_frame(b"abc", 2**64 - 16), "record 0"),
    "a length past the end": (_frame(b"abc", 4), "record 0"),
    "a record of 2 MB": (_frame(bytes(1 << 21)), "record 0"),
    "an end in a header": (_frame(b"")[:-4] + b"1234567", "record"),
    "another proto": (_frame(b"\x0a\x05\xff\xff\xff\xff\xff"), "record 0"),
    "no proto": (_frame(b"\xff" * 9), "record 0"),
    "an empty record": (_frame(b""), "record 0"),
    "a short record": (_example(input_ids=[1]), "record 0"),
    "another kind of record": (_example(other=[1]), "record 0: no input_ids"),
    "text": (b"One sentence a line.\n" * 9, "is text, not TFRecords"),
    "gzip": (gzip.compress(_frame(b"")), "record 0"),
}


def _safetensors(header: object, size: int | None = None) -> bytes:
    text = json.dumps(header).encode() if header is not None else b"\xff"
    return struct.pack("<Q", len(text) if size is None else size) + text


def _tensor(**changed) -> dict:
    values = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
    return {"a": {**values, **changed}}


SAFETENSORS = {
    "a shape of 2**40": _safetensors(_tensor(shape=[1 << 40])),
    "a negative shape": _safetensors(_tensor(shape=[-1])),
    "an overflow": _safetensors(_tensor(shape=[1 << 33] * 2)),
    "offsets outside": _safetensors(_tensor(data_offsets=[0, 1 << 40])),
    "offsets that are swapped": _safetensors(_tensor(data_offsets=[4, 0])),
    "an unknown type": _safetensors(_tensor(dtype="F5")),
    "a list": _safetensors([]),
    "no JSON": _safetensors(None),
    "a header of 2**60 bytes": _safetensors({}, 1 << 60),
    "a short header": b"\1\0",
    "nested": _safetensors({}, 100_000) + b"[" * 100_000,
}
TOKENS = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
VOCABULARIES = {
    "invalid UTF-8": (TOKENS.encode() + b"\xff\n", "invalid UTF-8 byte 0xff"),
    "half a pair": (TOKENS.encode() + b"\xed\xa0\xbd\n", "invalid UTF-8"),
    "a token twice": (f"{TOKENS}a\na\n".encode(), "duplicate token 'a'"),
    "an empty line": (f"{TOKENS}\na\n".encode(), ":6: empty line"),
    "a mark": (b"\xef\xbb\xbf" + TOKENS.encode(), "byte order mark"),
    "a pickle": (b"\x80\x04\x95", "this is a pickle"),
    "empty": (b"", "no "),
}
TEXTS = {
    "a damaged gzip file": ("corpus.txt", b"\x1f\x8b\x08\x00damaged", ""),
    "UTF-16": ("corpus.txt", "a b\n".encode("utf-16"), "is UTF-16"),
    "a zip archive": ("corpus.txt", b"PK\x03\x04" + bytes(99), "zip"),
    "invalid UTF-8": ("corpus.txt", b"a\xff\n", "invalid UTF-8 byte 0xff"),
    "empty": ("corpus.txt", b"", ""),
}
JSON_LINES = {
    "nested": (b"[" * 100_000 + b"\n", "Expected `object`, got `array`"),
    "no text": (b'{"a": 1}\n', "'text' is not a string: None"),
    "cut": (b'{"text": "a', "Input data was truncated"),
}


def _squad(**changed) -> bytes:
    qa = {
        "id": "1",
        "question": "who?",
        "answers": [{"text": "a", "answer_start": 0}],
        **changed,
    }
    paragraph = {"context": "a b c", "qas": [qa]}
    return json.dumps({"data": [{"paragraphs": [paragraph]}]}).encode()


SQUAD = {
    "nested": (b'{"a": ' + b"[" * 100_000, "JSON is nested too deep"),
    "a start of 10**30": (
        _squad(answers=[{"text": "a", "answer_start": 10**30}]),
        "answer",
    ),
    "damaged gzip": (gzip.compress(_squad())[:-5], "damaged gzip"),
}


def _link(target: str, path: pathlib.Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def _linked_folder(path: pathlib.Path) -> None:
    outside = path.parent.parent / "model"
    shutil.rmtree(path)
    path.symlink_to(outside)


def _no_graph(path: pathlib.Path) -> None:
    path.write_bytes(b"")


PROTO = "saved/saved_model.pb"
SAVED = ("doctor_model",)
SAVED_MODELS = {
    "an asset that is a link": (
        "saved/assets/vocab.txt",
        functools.partial(_link, "/etc/passwd"),
        "leads out of the folder",
    ),
    "assets that are a link": (
        "saved/assets",
        _linked_folder,
        "leads out of the folder",
    ),
    "an asset that is a pipe": (
        "saved/assets/vocab.txt",
        pipe,
        "is a pipe or device",
    ),
    "variables that are a link": (
        "saved/variables/variables.index",
        functools.partial(_link, "../../model/bert_model.ckpt.index"),
        "leads out of the folder",
    ),
    "no graph": (PROTO, _no_graph, "not one graph with objects"),
    "no proto": (PROTO, b"\xff" * 9, "cannot be read"),
}


def cases() -> list[Case]:
    """All cases of this file."""

    def several(kind, path, contents, runs):
        return [
            Case(kind, name, path, content, message, runs)
            for name, (content, message) in contents.items()
        ]

    weights = {
        name: (content, "cannot be read")
        for name, content in SAFETENSORS.items()
    }
    converts = ("convert_huggingface",)
    weight_files = {
        "a file of another folder": (
            b'{"weight_map": {"a": "../a.safetensors"}}',
            "Expected `str` matching regex",
        ),
        "a list": (b'{"weight_map": []}', "Expected `object`, got `array`"),
    }
    vocab_runs = ("create_pretraining_data", "extract_features")
    return [
        *several("records", "bare/good.tfrecord", RECORDS, BARE),
        *several("safetensors", "hf/model.safetensors", weights, converts),
        *several(
            "list of weights",
            "other/model.safetensors.index.json",
            weight_files,
            converts,
        ),
        *several("vocabulary", "model/vocab.txt", VOCABULARIES, vocab_runs),
        *[
            Case("text", name, path, content, message, ("create_vocab",))
            for name, (path, content, message) in TEXTS.items()
        ],
        *several("JSON lines", "corpus.jsonl", JSON_LINES, ("prepare_corpus",)),
        *several("SQuAD", "squad.json", SQUAD, ("run_squad",)),
        *[
            Case("SavedModel", name, path, content, message, SAVED)
            for name, (path, content, message) in SAVED_MODELS.items()
        ],
    ]
