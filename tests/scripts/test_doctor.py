"""doctor: healthy sets raise nothing, and every fault is one line."""

import shutil

import pytest

import create_pretraining_data
import doctor
from tests.helpers import model_files, small, text

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


def test_records_that_are_missing_are_one_line(run_script, tmp_path):
    code, out, err = run_script(doctor, input_file=tmp_path / "x")
    assert (code, out) == (2, "")
    assert err.startswith("error: --input_file=") and err.count("\n") == 1
