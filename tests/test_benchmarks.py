"""The benchmarks run, at toy sizes; a benchmark is not a test."""

import sys

from benchmarks import (
    guard,
    pretraining_step,
    records,
    tokenization,
    vocabulary,
)
from modeling import checkpoints, counts
from modeling.models import build_pretraining_model
from tests import small, text
from tests.small import B, H, L, P, S, V


def test_a_step_is_timed():
    figures = pretraining_step.measure(small.config(), B, S, P, size=13, runs=1)
    assert figures["seconds"] > 0
    assert figures["share_of_matmul"] > 0


def test_the_guards_cost_is_measured():
    config = small.config(num_hidden_layers=1)
    figures = guard.measure(config, B, S, P, runs=1)
    assert figures["seconds"] > 0
    assert figures["ratio"] > 0


def test_flops_are_those_of_the_matrices():
    """Every kernel meets every token, the word embeddings every mask."""
    named = checkpoints.model_variables(build_pretraining_model(small.config()))
    per_token = sum(
        int(variable.shape[0] * variable.shape[1])
        for name, variable in named.items()
        if name.startswith("bert/encoder") and name.endswith("kernel")
    )
    attention = L * 2 * S * H
    expected = B * S * (per_token + attention)
    expected += B * P * (H * H + H * V) + B * H * H
    found = counts.pretraining_flops(small.config(), B, S, P)
    assert found == 6 * expected


def test_tokenization_is_timed(tmp_path):
    text.write_vocabulary(tmp_path / "vocab.txt")
    figures = tokenization.measure(
        ["the cat sees the dog ."] * 1009, str(tmp_path / "vocab.txt"), runs=1
    )
    assert figures["megabytes_per_second"] > 0


def test_records_are_timed(tmp_path):
    text.write_vocabulary(tmp_path / "vocab.txt")
    text.write_corpus(tmp_path / "corpus.txt", 7)
    figures = records.measure(
        str(tmp_path / "corpus.txt"),
        str(tmp_path / "vocab.txt"),
        1,
        str(tmp_path),
    )
    assert figures["instances_per_second"] > 0
    assert figures["peak_megabytes_of_a_process"] > 0


def test_a_vocabulary_is_timed(tmp_path):
    text.write_corpus(tmp_path / "source.txt", 7)
    figures = vocabulary.measure(
        str(tmp_path / "source.txt"), str(tmp_path), 150, runs=1
    )
    assert figures["ratio"] > 0
    assert 10 < figures["peer_peak_megabytes"] < 1000
    assert 10 < figures["peak_megabytes"] < 1000


def test_memory_is_that_of_all_processes():
    child = "b = b'x' * 60_000_000; sum(range(10**7))"
    command = f"[sys.executable, '-c', {child!r}]"
    parent = "import subprocess, sys; b = b'x' * 70_000_000; "
    parent += f"subprocess.run({command})"
    _, peak = vocabulary.run([sys.executable, "-c", parent])
    assert 130 < peak < 230
