"""One broken file of each kind, for each script that reads it.

What else can be wrong with a file is in the tests of its reader.
"""

import functools
import json
import pathlib
import shutil
import struct

from tests.bad_inputs.case import Case

NO_UTF_8 = b"a\n\xff\n"
WEIGHTS = {"weight_map": {"a": "../a.safetensors"}}
OVERFLOW = {"dtype": "F32", "shape": [1 << 33] * 2, "data_offsets": [0, 4]}
PROTO = "saved/saved_model.pb"
TEXT = ("create_vocab", "create_pretraining_data")
TUNING = ("run_classifier", "run_ner", "run_squad", "run_swag")


def _safetensors() -> bytes:
    header = json.dumps({"a": OVERFLOW}).encode()
    return struct.pack("<Q", len(header)) + header


def _link(target: str, path: pathlib.Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def _linked_folder(path: pathlib.Path) -> None:
    outside = path.parent.parent / "model"
    shutil.rmtree(path)
    path.symlink_to(outside)


def _flip(path: pathlib.Path) -> None:
    content = bytearray(path.read_bytes())
    content[-20] ^= 4
    path.write_bytes(content)


def cases() -> list[Case]:
    """All cases of this file."""
    vocabulary = ("create_pretraining_data", "extract_features", *TUNING)
    link = functools.partial(_link, "/etc/passwd")
    rows = [
        ("records", "bare/good.tfrecord", bytes(99), "record 0"),
        ("listed records", "records/good.tfrecord", _flip, " at byte "),
        ("safetensors", "hf/model.safetensors", _safetensors(), "cannot be"),
        (
            "list of weights",
            "other/model.safetensors.index.json",
            json.dumps(WEIGHTS).encode(),
            "",
        ),
        ("vocabulary", "model/vocab.txt", NO_UTF_8, ":2: invalid UTF-8"),
        ("text", "corpus.txt", NO_UTF_8, ":2: invalid UTF-8"),
        ("JSON lines", "corpus.jsonl", b'{"a": 1}\n', ":1: "),
        ("SQuAD", "squad.json", b'{"data": ', ""),
        ("table", "to_predict.tsv", b"t\tl\na\tx\nb\n", ":3: 1 column"),
        ("choices", "choices.csv", b"a,b\n1,2\n", ":1: 0 columns ending0"),
        ("words", "words.txt", b"the O\ncat\n", ":2: 1 columns"),
        ("sentences", "masks.txt", NO_UTF_8, ""),
        ("SavedModel", PROTO, b"\xff" * 9, "cannot be read"),
        ("link", "saved/assets/vocab.txt", link, "leads out of the folder"),
        ("linked folder", "saved/assets", _linked_folder, "leads out of"),
    ]
    runs = {
        "records": ("run_pretraining_bare", "doctor_bare"),
        "listed records": ("run_pretraining", "doctor_records"),
        "safetensors": ("convert_huggingface",),
        "list of weights": ("convert_huggingface",),
        "vocabulary": vocabulary,
        "text": TEXT,
        "JSON lines": ("prepare_corpus",),
        "SQuAD": ("run_squad",),
        "table": ("run_classifier",),
        "choices": ("run_swag",),
        "words": ("run_ner",),
        "sentences": ("extract_features", "fill_mask"),
    }
    return [
        Case(kind, name, path, content, message, (name,))
        for kind, path, content, message in rows
        for name in runs.get(kind, ("doctor_model",))
    ]
