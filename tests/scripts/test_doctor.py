"""doctor: healthy sets raise nothing, and every fault is one line."""

import shutil

import numpy as np
import pytest

import create_pretraining_data
import doctor
from bert.data import feature_names
from bert.data.records import content_check, encoding, reader
from tests.helpers import model_files, pretraining_files, small, text

pytestmark = pytest.mark.slow

S, P = 31, 5
V = len(text.VOCABULARY)
CLS, SEP, MASK = 2, 3, 4


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with corpus, vocabulary, config and records of it."""
    folder = tmp_path_factory.mktemp("doctor")
    text.write_corpus(folder / "corpus.txt", 151)
    model_files.write_sizes(folder, "config.json", max_position_embeddings=S)
    for name, words in (("plain", []), ("packed", ["--pack_sequences"])):
        shards = [f"{folder}/{name}/{i}.tfrecord" for i in range(2)]
        flags = {
            "input_file": folder / "corpus.txt",
            "vocab_file": folder / "vocab.txt",
            "output_file": ",".join(shards),
            "max_seq_length": S,
            "max_predictions_per_seq": P,
            "dupe_factor": 2,
            "num_processes": 1,
        }
        flags = [f"--{key}={value}" for key, value in flags.items()]
        create_pretraining_data.main(["create", *words, *flags])
    return folder


@pytest.fixture(scope="module")
def arrays(made):
    """The rows of the first shard, as they are written."""
    path = str(made / "plain" / "0.tfrecord")
    schema = feature_names.pretraining_schema(S, P)
    count = content_check.check_records(path, schema, V)
    (batch,) = reader.evaluation_batches([path], schema, count, 1)
    return {
        name: batch[name].numpy().astype("i8" if kind == "int64" else "f4")
        for name, (kind, _) in schema.items()
    }


@pytest.fixture
def diagnose_rows(diagnose, tmp_path, made):
    """Writes rows to a shard without a manifest and examines it."""

    def run(arrays, *words, **named):
        path = tmp_path / "rows.tfrecord"
        pretraining_files.write_shard(path, encoding.encode_examples(arrays))
        named = {"vocab_file": made / "vocab.txt", **named}
        code, found = diagnose(*words, input_file=path, **named)
        assert code == bool(found["wrong"])
        return path, found

    return run


@pytest.mark.parametrize("kind", ["plain", "packed"])
def test_healthy_records_raise_nothing(diagnose, made, kind):
    code, found = diagnose(
        input_file=f"{made}/{kind}/*.tfrecord",
        vocab_file=made / "vocab.txt",
        bert_config_file=made / "config.json",
    )
    assert (code, found["wrong"], found["suspicious"]) == (0, [], [])
    assert any("the 2 files are undamaged" in line for line in found["fine"])


def test_damaged_and_missing_shards(diagnose, made, tmp_path):
    folder = tmp_path / "plain"
    shutil.copytree(made / "plain", folder)
    content = bytearray((folder / "0.tfrecord").read_bytes())
    content[12] ^= 1
    (folder / "0.tfrecord").write_bytes(content)
    (folder / "1.tfrecord").rename(folder / "2.tfrecord")
    code, found = diagnose(input_file=f"{folder}/*.tfrecord")
    assert code == 1
    assert found["wrong"] == [
        f"{folder}/_0.manifest.json: lists 1.tfrecord, which is "
        "missing; make the records again",
        f"{folder}/0.tfrecord: record 0 at byte 0: checksum of the data "
        "differs; make the records again",
    ]


def test_records_that_no_writer_makes(diagnose_rows, arrays):
    second = arrays["segment_ids"][7].argmax()
    short = int((arrays["input_mask"].sum(axis=1) < S).argmax())
    twice = arrays["masked_lm_positions"][7, 0]
    for name, record, position, value, problem in (
        ("input_mask", 7, 3, 0, "input_mask is not ones followed by zeros: 1"),
        (
            "segment_ids",
            *(7, second + 1, 0),
            "segment_ids decrease inside a pair, or are not 0 on padding: 0",
        ),
        ("masked_lm_ids", 7, 0, SEP, "a masked position is on [CLS] or [SEP]"),
        ("masked_lm_positions", 7, 1, twice, "a position is masked twice: "),
        (
            "masked_lm_positions",
            *(short, 0, S - 1),
            f"a masked position is on padding: {S - 1}",
        ),
        ("input_ids", 7, 0, 5, "input_ids do not start with [CLS], 2: 5"),
    ):
        values = arrays[name].copy()
        values[record, position] = value
        path, found = diagnose_rows({**arrays, name: values})
        assert found["wrong"][0].startswith(
            f"{path}: record {record}: {problem}"
        )
    values[[9, 11]] = values[7]
    _, found = diagnose_rows({**arrays, "input_ids": values})
    assert "2: 5 (and 2 more records)" in found["wrong"][0]


def test_odd_shares(diagnose_rows, arrays):
    rows = np.arange(len(arrays["input_ids"]))[:, None]
    ids = arrays["input_ids"].copy()
    positions = arrays["masked_lm_positions"]
    real = arrays["masked_lm_weights"] > 0
    ids[rows, positions] = np.where(real, MASK, ids[rows, positions])
    labels = arrays["next_sentence_labels"]
    for replaced, expected in (
        ({"input_ids": ids}, "masked tokens are replaced by [MASK]; "),
        ({"next_sentence_labels": labels * 0}, "0% of the pairs are random"),
        (
            {"next_sentence_labels": labels * 0 + 1},
            "100% of the pairs are random (usual: ",
        ),
    ):
        path, found = diagnose_rows({**arrays, **replaced})
        lines = [x for x in found["suspicious"] if expected in x]
        assert len(lines) >= 1, found
        assert lines[0].startswith(f"{path}: ")


def test_a_config_and_a_vocabulary_that_do_not_fit(diagnose, made, tmp_path):
    config, vocab = tmp_path / "config.json", tmp_path / "vocab.txt"
    sizes = small.config(vocab_size=V - 2, max_position_embeddings=S - 1)
    config.write_text(sizes.to_json())
    vocab.write_text("".join(f"{x}\n" for x in reversed(text.VOCABULARY)))
    _, found = diagnose(
        input_file=f"{made}/plain/*.tfrecord",
        vocab_file=vocab,
        bert_config_file=config,
    )
    wrong = "\n".join(found["wrong"])
    assert f"{config}: vocab_size is {V - 2}; expected {V}, the number" in wrong
    assert (
        f"--max_seq_length={S}; expected at most max_position_embeddings, "
        f"{S - 1} ({config})"
    ) in wrong
    assert f"{vocab}: sha256 is " in wrong
    assert f"[PAD] is token {V - 1}" in found["suspicious"][0]


def test_no_file_to_check_and_missing_files(run_script, diagnose, tmp_path):
    for name in ("vocab_file", "bert_config_file"):
        code, found = diagnose(**{name: tmp_path / "x"})
        (line,) = found["wrong"]
        assert code == 1 and line.startswith(f"{tmp_path}/x: No such file or ")
    for flags, message in (
        ({}, "no file to check; pass --input_file, --vocab_file, "),
        ({"input_file": tmp_path / "x"}, "--input_file="),
        ({"output_dir": tmp_path / "x"}, f"{tmp_path}/x: no such folder; "),
    ):
        code, out, err = run_script(doctor, **flags)
        assert (code, out) == (2, "")
        assert err.startswith(f"error: {message}")
        assert len(err.splitlines()) == 1
