"""The benchmarks run at toy sizes; a figure of each is a positive number."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from benchmarks import (
    ahead_of_time,
    by_seed,
    checkpoint_save,
    determinism,
    finetuning,
    first_result,
    glue,
    gpu_steps,
    guard,
    instances,
    large_files,
    long_line,
    peers_in_turns,
    pretraining_step,
    records,
    scaling,
    serving,
    serving_load,
    soak,
    squad,
    step_profile,
    text_ops,
    tokenization,
    vocabulary,
)
from bert.data.pretraining.settings import InstanceSettings
from tests.helpers import classifier_files, small, squad_files
from tests.helpers import text as texts
from tests.helpers.small import B, P, S, V

pytestmark = pytest.mark.long
PEERS = pathlib.Path(__file__).parents[2] / ".venv-peers"
WINDOWS = {"max_seq_length": small.POSITIONS, "max_query_length": 5}
LINES = ["the cats see a dog .", "a bird, a fish"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Small files of all kinds; lengths that are fixed in a benchmark."""
    classifier_files.write_model(tmp_path)
    classifier_files.write_task(tmp_path)
    texts.write_corpus(tmp_path / "corpus.txt", 150)
    squad_files.write(tmp_path / "questions.json", 19, 7, version_2=False)
    (tmp_path / "lines.txt").write_text("".join(f"{x}\n" for x in LINES))
    (tmp_path / "config.json").write_text(small.config().to_json())
    for module in (first_result, glue):
        monkeypatch.setattr(module, "MAX_SEQ_LENGTH", small.POSITIONS)
    monkeypatch.setattr(squad, "WINDOWS", WINDOWS)
    monkeypatch.setattr(finetuning, "BATCH_SIZE", 7)
    monkeypatch.setattr(gpu_steps, "MATMUL_SIZE", 13)
    monkeypatch.setattr(gpu_steps, "CALL", 2)
    flags, ending = large_files.SCRIPTS["extract_features.py"]
    shorter = [*flags, f"--max_seq_length={small.POSITIONS}"], ending
    monkeypatch.setitem(large_files.SCRIPTS, "extract_features.py", shorter)
    return tmp_path


def run_finetuning(folder):
    """On both kinds of examples."""
    files = {"mrpc": folder, finetuning.SQUAD: folder / "questions.json"}
    return [
        finetuning.measure(
            name, str(path), str(folder), small.POSITIONS, 11, runs=1
        )
        for name, path in files.items()
    ]


def run_first_result(folder):
    """A second run computes nothing again."""
    table = folder / "mails"
    table.mkdir()
    classifier_files.write_table(table, 61)
    (table / "mails.csv").rename(table / "train.csv")
    (table / "dev.csv").write_text((table / "train.csv").read_text())
    words = [str(folder / "results"), str(folder), [str(table)]]
    figures, again = (
        first_result.measure(*words, sizes="37,62", seeds="2-2")
        for _ in range(2)
    )
    sides = ["ours", "words", "pooler", "mean"]
    assert figures == again and [x["side"] for x in figures] == sides
    assert "| mails, 37 | " in first_result.summary(figures)
    return figures


def run_instances(folder):
    documents, vocab = instances.read_documents(
        str(folder / "corpus.txt"), str(folder / "vocab.txt")
    )
    settings = InstanceSettings(max_seq_length=31)
    return instances.measure(documents, vocab, settings, runs=1)


def run_large_files(folder):
    """Both scripts; `measure` compares the bytes of all ways."""
    model = classifier_files.write_export(folder, openvino="float32")
    lines = str(folder / "lines.txt")
    return [
        row
        for script in large_files.SCRIPTS
        for row in large_files.measure(script, model, lines)
    ]


def run_serving_load(folder):
    model = classifier_files.write_export(folder)
    lines = str(folder / "lines.txt")
    return list(serving_load.measure(model, lines, 0.5, clients=(1, 3)))


def run_soak(folder):
    """Long enough for the second version."""
    export = classifier_files.write_export(folder, openvino="float32")
    network, lines = f"{export}/openvino", str(folder / "lines.txt")
    figures = soak.soak(network, lines, minutes=0.5, wait=0.1, clients=3)
    assert figures["failed"] == 0 and figures["seconds_to_version_2"] > 0
    return figures


def run_steps_on_a_device(folder):
    words = ["remat", "deterministic", "parts=2", "compared"]
    sizes, path = (2 * B, S, P), str(folder / "config.json")
    figures = gpu_steps.measure(path, sizes, "float32", words, runs=1)
    off = [figures[name] for name in figures if name.endswith("_off")]
    assert len(off) == 3 and max(off) < 1e-4
    return figures


def run_in_two_processes(folder):
    words = [str(folder / "config.json"), *map(str, (2 * B, S, P))]
    command = [sys.executable, "-m", "benchmarks.gpu_steps", *words]
    printed = subprocess.check_output([*command, "float32", "resumed"])
    figures = json.loads(printed)
    assert figures["bytes_off"] == 0
    return figures


RUNS = {
    "checkpoint_save": lambda folder: checkpoint_save.measure(
        small.config(max_position_embeddings=17), 2, str(folder)
    ),
    "determinism": lambda folder: determinism.measure(
        small.config(), B, S, P, runs=1
    ),
    "finetuning": run_finetuning,
    "first_result": run_first_result,
    "glue": lambda folder: glue.measure(
        "mrpc", str(folder), str(folder), 1, by_seed.numbers("2-3")
    ),
    "gpu_steps": run_steps_on_a_device,
    "gpu_steps resumed": run_in_two_processes,
    "guard": lambda folder: guard.measure(small.config(), B, S, P, runs=1),
    "instances": run_instances,
    "large_files": run_large_files,
    "long_line": lambda folder: long_line.measure(
        str(folder / "vocab.txt"), (2_000,), 1
    ),
    "peers_in_turns": lambda folder: peers_in_turns.measure(
        "infer",
        str(folder / "config.json"),
        B,
        [S],
        names=("ours/float32/fused",),
        runs=1,
    ),
    "pretraining_step": lambda folder: pretraining_step.measure(
        small.config(), B, S, P, size=13, runs=1
    ),
    "records": lambda folder: records.measure(
        records.ROOT / "create_pretraining_data.py",
        str(folder / "corpus.txt"),
        [f"--vocab_file={folder / 'vocab.txt'}"],
        str(folder / "records.tfrecord"),
    ),
    "scaling": lambda folder: scaling.measure(
        scaling.config_of({**scaling.START, "H": 64, "L": 1}, vocab_size=V),
        B,
        S,
        runs=1,
    ),
    "serving": lambda folder: serving.measure(
        classifier_files.write_export(folder),
        str(folder / "lines.txt"),
        runs=1,
    ),
    "serving_load": run_serving_load,
    "soak": run_soak,
    "squad": lambda folder: squad.measure(
        *[str(folder / "questions.json")] * 2, str(folder), 1, [3]
    ),
    "step_profile": lambda folder: step_profile.measure(
        small.config(hidden_size=128, num_attention_heads=2), B, S, P
    ),
    "text_ops": lambda folder: text_ops.measure(
        LINES, str(folder / "vocab.txt"), runs=1
    ),
    "tokenization": lambda folder: tokenization.measure(
        LINES * 99, str(folder / "vocab.txt"), runs=1
    ),
    "vocabulary": lambda folder: vocabulary.measure(
        str(folder / "corpus.txt"), str(folder), 150, runs=1
    ),
}


def numbers(value):
    """All numbers in the figures of a benchmark."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [x for part in value for x in numbers(part)]
    return [value] if isinstance(value, (int, float)) else []


@pytest.mark.parametrize("name", RUNS)
def test_a_benchmark_measures(folder, name, capsys):
    figures = RUNS[name](folder)
    if figures is None:  # printed, a line for each
        lines = capsys.readouterr().out.splitlines()
        figures = [json.loads(line) for line in lines]
    found = numbers(figures)
    assert found and np.isfinite(found).all()
    assert max(found) > 0


@pytest.mark.parametrize(
    ("kind", "device", "rows", "parts"),
    [("gpu", "h100", 256, 1), ("tpu", "v5e", 32, 2)],
)
def test_a_step_for_a_device_has_none_of_what_is_counted(
    tmp_path, kind, device, rows, parts
):
    """Uses the compilers that `make gpu` and `make tpu` install.

    The network has two layers, so that attention scores that are kept after
    their layer are counted twice. For a sum over 32 sequences, not for one over
    16, XLA would lay out hidden states with that axis last. A TPU's copies into
    its fast memory look like copies of weights.
    """
    config = small.config(
        vocab_size=1009,
        hidden_size=128,
        num_attention_heads=2,
        intermediate_size=512,
        max_position_embeddings=512,
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
    )
    path = tmp_path / "config.json"
    path.write_text(json.dumps(vars(config)))
    found = ahead_of_time.measure(
        str(PEERS / kind / "bin" / "python"),
        device,
        8,
        str(path),
        (rows, 512, 77),
        "bfloat16",
        [f"parts={parts}"],
    )
    assert found["float64"] == found["host_transfers"] == 0
    assert found["scores_held"] <= (device == "v5e")
    if device == "h100":
        assert found["weight_copies"] == found["first_axis_last"] == 0
    assert found["all_reduces"] == 1
    assert found["temporary_bytes"] > 0
    # The new weights and moments take the memory of the old ones.
    assert found["alias_bytes"] > 0.8 * found["argument_bytes"]
    assert found["teraflop"] == pytest.approx(
        found["teraflop_by_formula"], rel=0.2
    )
