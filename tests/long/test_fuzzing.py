"""Readers of files that others made; only in `make test-long`.

    FUZZ_FILES=100000 python -m pytest -m long tests/long/test_fuzzing.py

Whatever a file holds, a reader accepts it or raises a `UserError`, within 5
seconds. Each edit replaces words of a good file, or bytes if it has no words.
"""

import os
import re
import shutil

import hypothesis
import pytest
from hypothesis import strategies

from bert.common.errors import UserError
from bert.data import feature_names, tables
from bert.data.corpus import documents, raw_text
from bert.data.records import content_check, manifest, shard_check
from bert.data.text import tokenizer_files, vocabulary
from bert.modeling.config import BertConfig
from bert.modeling.formats import (
    checkpoint_files,
    huggingface,
    huggingface_config,
)
from bert.tasks.classification.files import schema_of
from bert.tasks.ner import conll
from bert.tasks.squad import examples as squad
from bert.tasks.swag import examples as swag
from tests.bad_inputs import good_files

FILES = int(os.environ.get("FUZZ_FILES", "2000"))
WORDS = re.compile(rb'"[^"]*"|[\w.+-]+|\s+|.', re.DOTALL)
HOSTILE = [b"null", b"true", b"-1", b"1.5", b"1e999", b"NaN", b"9" * 5000]
HOSTILE += [b"[]", b"{}", b"[" * 99_999, b'{"a":' * 9999, b'"', b'"a"', b"}"]
HOSTILE += [b'"\\ud800"', b'"\\u0000"', b'"../x"', b'"' + b"b" * 10**6 + b'"']
HOSTILE += [b"\n", b"\r", b"\t", b",", b"\\", b"\xef\xbb\xbf", b"\xff\xfe"]
HOSTILE += [b"PK\3\4", b"\x1f\x8b", b"\xed\xa0\x80", b"\0" * 999, b"a" * 99_999]
HOSTILE += [x.to_bytes(8, "little") for x in (2**35, 2**62, 2**63, 2**64 - 1)]
EDITS = strategies.lists(
    strategies.tuples(
        strategies.integers(0, 1 << 16),
        strategies.integers(0, 9),
        strategies.sampled_from(HOSTILE) | strategies.binary(max_size=9),
    ),
    min_size=1,
    max_size=4,
)
SCHEMA = feature_names.pretraining_schema(31, 5)


def all_of(read):
    return lambda path: list(read(path))


def in_folder(read):
    return lambda path: read(os.path.dirname(path))


def reject(damage):
    if damage:
        raise UserError(str(damage))


def records(path):
    reject(shard_check.check_shard(path, None))
    content_check.check_records(path, SCHEMA, 99)


READERS = {
    "model/vocab.txt": vocabulary.read_vocabulary,
    "model/bert_config.json": BertConfig.from_json_file,
    "model/task.json": in_folder(checkpoint_files.recorded_task),
    "records/_good.manifest.json": manifest.read,
    "bare/good.tfrecord": records,
    "hf/config.json": huggingface_config.read,
    "hf/model.safetensors": in_folder(huggingface.read),
    "hf/tokenizer_config.json": in_folder(tokenizer_files.read),
    "corpus.txt": lambda path: documents.count_documents(path),
    "corpus.jsonl": all_of(
        lambda path: raw_text.read_paragraphs([path], "file", "text")
    ),
    "table.tsv": lambda path: tables.read(path, schema_of("t", label="l")),
    "choices.csv": lambda path: swag.read(path, True),
    "squad.json": lambda path: squad.read(path, squad.SPANS),
    "words.txt": all_of(lambda path: conll.read(path, conll.Columns())),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    good_files.write(folder)
    return folder


def edited(content, edits):
    words = WORDS.findall(content)
    for where, size, value in edits:
        start = where % (len(words) + 1)
        words[start : start + size] = [value]
    return b"".join(words)


@pytest.mark.long
@pytest.mark.parametrize("name", READERS)
def test_a_reader_rejects_what_it_cannot_read(good, tmp_path, name):
    folder = tmp_path / "files"
    shutil.copytree(good, folder)
    path, counts = folder / name, {"read": 0, "rejected": 0}
    content = path.read_bytes()
    READERS[name](str(path))

    @hypothesis.settings(max_examples=FILES, derandomize=False, deadline=5000)
    @hypothesis.given(EDITS)
    def fuzz(edits):
        path.write_bytes(edited(content, edits))
        try:
            READERS[name](str(path))
            counts["read"] += 1
        except UserError:
            counts["rejected"] += 1

    fuzz()
    print(f"{name}: {counts}")
    assert counts["rejected"] > 0
