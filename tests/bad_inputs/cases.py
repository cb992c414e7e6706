"""One broken file of each kind, and a script that reads it.

What else can be wrong with a file is in the tests of its reader.
"""

import dataclasses
import functools
import json
import os
import pathlib
import struct
from collections.abc import Callable

import numpy as np

from bert.common.formats import tensor_files


@dataclasses.dataclass(frozen=True)
class Case:
    """One file that replaces a good one.

    Attributes:
        path: of the file, below the folder of good files.
        content: its bytes; or makes it, from the path.
        message: part of the line that the script prints; "" is the file's name.
        run: name in `runs.RUNS` of a script that reads it.
    """

    path: str
    content: bytes | Callable[[pathlib.Path], None]
    message: str
    run: str

    def write(self, folder: pathlib.Path) -> None:
        """Replaces the good file."""
        path = folder / self.path
        if isinstance(self.content, bytes):
            path.write_bytes(self.content)
        else:
            self.content(path)


NO_UTF_8 = b"a\n\xff\n"
WEIGHTS = {"weight_map": {"a": "../a.safetensors"}}
OVERFLOW = {"dtype": "F32", "shape": [1 << 33] * 2, "data_offsets": [0, 4]}
MANIFEST = b'{"format": 2, "shards": {'  # which are not another program's words
INDEX = "model/bert_model.ckpt.index"


def _safetensors() -> bytes:
    header = json.dumps({"a": OVERFLOW}).encode()
    return struct.pack("<Q", len(header)) + header


def _pipe(path: pathlib.Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def _flip(path: pathlib.Path) -> None:
    content = bytearray(path.read_bytes())
    content[-20] ^= 4
    path.write_bytes(content)


def _without_heads(path: pathlib.Path) -> None:
    prefix = str(path.with_suffix(""))
    values = tensor_files.read(prefix)
    kept = {k: x for k, x in values.items() if k.startswith("bert/")}
    tensor_files.write(prefix, kept)


def _other_tokenizer(path: pathlib.Path) -> None:
    path.write_text('{"tokenize_chinese_chars": false}')
    (path.parent / "model.safetensors").unlink()  # is not read


def _longer(path: pathlib.Path) -> None:
    path.write_text(f"{path.read_text()}more\nless\n")


def _layer(number: str, path: pathlib.Path) -> None:
    name = f"bert/encoder/layer_{number}/output/dense/bias"
    prefix = str(path.with_suffix(""))
    tensor_files.write(prefix, {name: np.zeros(1, "f4")})


CASES = [
    Case(*row)
    for row in [
        (
            "model/bert_config.json",
            rb'{"vocab_size": 89, "\u001b[2J": 1}',
            "unknown key",
            "extract_features",
        ),
        (
            "model/bert_config.json",
            b"{}",
            "missing required field `vocab_size`",
            "run_pretraining",
        ),
        (
            "records/_good.manifest.json",
            MANIFEST,
            "expected a complete manifest",
            "run_pretraining",
        ),
        ("records/good.tfrecord", b"x", "has 1 bytes; exp", "run_pretraining"),
        ("corpus.txt", b"\n \n", "no document", "create_vocab"),
        (
            "model/task.json",
            b'{"kind": "any", "labels": ["a", 1]}',
            "Expected `str`, got `int` - at `$.labels[1]`",
            "convert_google",
        ),
        (
            "model/bert_model.ckpt.json",
            b'{"settings": {"do_lower_case": "no"}}',
            "Expected `bool | null`, got `str` - at `$.do_lower_case`",
            "fill_mask",
        ),
        (
            "hf/tokenizer_config.json",
            _other_tokenizer,
            "tokenize_chinese_chars is False; expected True",
            "convert_huggingface",
        ),
        (
            "hf/tokenizer.json",
            _pipe,
            "is a pipe or device",
            "convert_huggingface",
        ),
        *(
            (
                INDEX,
                functools.partial(_layer, number),
                "lacks",
                "convert_google",
            )
            for number in ("x", "9" * 20)
        ),
        (INDEX, _without_heads, "has no masked-LM head", "export_hub_mlm"),
        *(
            ("model/vocab.txt", _longer, "tokens; expected at most", name)
            for name in ("convert_google", "export_hub", "extract_features")
        ),
        ("out", _pipe, "out' is not a file name", "create_pretraining_data"),
        (
            "corpus.txt",
            b"",
            "0 documents with text; expected at least 2: a random next",
            "create_pretraining_data",
        ),
        (
            "corpus.txt",
            "cat .\n\n\u200b\n".encode(),
            "1 document with text; expected at least 2",
            "create_pretraining_data",
        ),
        (
            "records/saved_model.pb",
            b"",
            "no variables/variables.index; expected a Sav",
            "demo",
        ),
        ("masks.txt", b"\n", ": no sentences; expected one", "fill_mask"),
        (
            "masks.txt",
            b"a [MASK]\nno mask here\n",
            ":2: 'no mask here' has no mask",
            "fill_mask",
        ),
        (
            "masks.txt",
            b"cat " * 36 + b"[MASK]\n",
            "a sentence has 39 tokens; expected at most",
            "fill_mask",
        ),
        ("masks.txt", b"", "no rows; expected one text", "extract_features"),
        ("bare/good.tfrecord", bytes(99), "record 0", "run_pretraining_bare"),
        ("records/good.tfrecord", _flip, " at byte ", "run_pretraining"),
        (
            "hf/model.safetensors",
            _safetensors(),
            "cannot be",
            "convert_huggingface",
        ),
        (
            "other/model.safetensors.index.json",
            json.dumps(WEIGHTS).encode(),
            "",
            "convert_huggingface",
        ),
        ("model/vocab.txt", NO_UTF_8, ":2: invalid", "create_pretraining_data"),
        ("corpus.txt", NO_UTF_8, ":2: invalid UTF-8", "create_vocab"),
        (
            "corpus.jsonl",
            b'{"body": "A."}',
            ":1: 'text' is not a string: None; expected the text of a "
            "document; the fields are 'body': pass --text",
            "prepare_corpus",
        ),
        (
            "corpus.jsonl",
            b"{}",
            "the text of a document; the fields are none: ",
            "prepare_corpus",
        ),
        (
            "corpus.jsonl",
            b'\n["A."]',
            ":2: Expected `object`, got `array`; expect",
            "prepare_corpus",
        ),
        (
            "corpus.json",
            b'{\n"text": "A."\n}',
            ":1: JSON is incomplete",
            "prepare_corpus_json",
        ),
        (
            "corpus.txt",
            b" \n\n",
            ": no text in it; expected at least one document",
            "prepare_corpus_text",
        ),
        ("to_predict.tsv", b"t\tl\na\tx\nb\n", ":3: 1 col", "run_classifier"),
        ("choices.csv", b"a,b\n1,2\n", ":1: 0 columns ending0", "run_swag"),
        ("words.txt", b"the O\ncat\n", ":2: 1 columns", "run_ner"),
    ]
]
