"""The benchmarks run at toy sizes; they measure, but check nothing."""

import json
import sys

import numpy as np
import pytest

import create_pretraining_data
from benchmarks import (
    checkpoint_save,
    determinism,
    experiments,
    flops,
    gpu_steps,
    guard,
    instances,
    long_line,
    own_step,
    packing,
    peers_in_turns,
    preemptions,
    pretraining_step,
    records,
    scaling,
    step_profile,
    tokenization,
    vocabulary,
)
from data.pretraining.settings import InstanceSettings
from tests.helpers import killed_runs, small, text, tiny
from tests.helpers.small import B, P, S, V


@pytest.mark.long
def test_a_step_is_timed():
    config = small.config()
    figures = pretraining_step.measure(config, B, S, P, size=13, runs=1)
    for name in ("nominal", "executed"):
        work = getattr(flops, name)(config, B, S, P)
        assert figures[f"{name}_gflop"] == round(work / 1e9, 1)
    for kind in ("float32", "bfloat16"):
        found = figures[kind]
        assert 0 < found["executed_share"] < found["nominal_share"]


@pytest.mark.long
def test_a_step_is_timed_on_the_device(tmp_path, monkeypatch):
    monkeypatch.setattr(gpu_steps, "MATMUL_SIZE", 13)
    monkeypatch.setattr(gpu_steps, "CALL", 2)
    path = tmp_path / "config.json"
    path.write_text(small.config().to_json())
    words = ["remat", "deterministic", "parts=2"]
    figures = gpu_steps.measure(
        str(path), (2 * B, S, P), "float32", words, runs=1
    )
    assert figures["what"].endswith("float32 remat deterministic parts=2")
    seconds = figures["milliseconds"] / 1e3
    rate = figures["examples_per_second"]
    assert rate * seconds == pytest.approx(2 * B, rel=0.1)
    assert figures["gigabytes"] == 0  # of a GPU


@pytest.mark.long
def test_both_sides_of_the_guard_take_the_same_step():
    """The bare one always updates; both clip the gradient."""
    sides = []
    for make in (guard.guarded, guard.bare):
        made = tiny.make_steps()
        data = tiny.batches(None, np.nan)
        run = make(made, data)
        run()
        after = tiny.bits(made)
        run()
        sides.append((after, tiny.bits(made) == after))
    assert sides[0][0] == sides[1][0]
    assert tiny.take(tiny.make_steps(), None)[0, -2] > 1  # its norm
    assert [kept for _, kept in sides] == [True, False]


@pytest.mark.long
def test_the_cost_of_a_checkpoint_is_measured(tmp_path):
    config = small.config(max_position_embeddings=17)
    figures = checkpoint_save.measure(config, 2, str(tmp_path))
    assert list(map(len, figures["seconds"].values())) == [5, 2, 2, 2]
    assert figures["more_gb_with_saves"] >= 0


@pytest.mark.long
def test_the_cost_of_determinism_is_measured():
    figures = determinism.measure(small.config(), B, S, P, runs=1)
    assert set(figures["seconds"]) == {"deterministic", "default"}
    assert figures["ratio"] > 0


@pytest.mark.long
def test_the_guards_cost_is_measured():
    config = small.config(num_hidden_layers=1)
    figures = guard.measure(config, B, S, P, runs=1)
    assert figures["seconds"] > 0
    assert figures["ratio"] > 0


@pytest.mark.long
def test_a_preempted_run_is_timed(tmp_path):
    killed_runs.write_files(tmp_path)
    figures = preemptions.measure(
        f"{tmp_path}/train.tfrecord", f"{tmp_path}/config.json", 31, 2
    )
    spent = 3 * figures["seconds_per_start"]
    used = figures["useful"] * figures["seconds"]
    assert used == pytest.approx(31 * figures["step_seconds"], rel=0.1)
    assert used + spent == pytest.approx(figures["seconds"], rel=0.01)
    assert figures["slowest_end"] > 0


@pytest.mark.long
def test_tokenization_is_timed(tmp_path):
    text.write_vocabulary(tmp_path / "vocab.txt")
    figures = tokenization.measure(
        ["the cat sees the dog ."] * 1009, str(tmp_path / "vocab.txt"), runs=1
    )
    assert figures["megabytes_per_second"] > 0
    assert figures["graph_megabytes_per_second"] > 0
    lines = ["the cat sees the dog ."] * 19
    single = tokenization.measure_single(
        lines, str(tmp_path / "vocab.txt"), runs=1
    )
    assert single["lines"] == 19
    assert 1 < single["microseconds"] < 10_000


def test_texts_are_generated_from_the_vocabulary(tmp_path):
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens += [f"##{chr(0x0E01 + i)}" for i in range(30)]
    path = tmp_path / "vocab.txt"
    path.write_text("".join(f"{token}\n" for token in tokens), "utf-8")
    texts = tokenization.generated(str(path), 7)
    assert set(texts) == {"Thai", "mixed"}
    assert set(texts["mixed"]) <= set(texts["Thai"])
    for line in texts["Thai"]:
        assert 60 < len(line) < 75
        assert {x for x in line if x.isalpha()} <= {x[-1] for x in tokens[5:]}


def test_instances_are_timed(tmp_path):
    text.write_vocabulary(tmp_path / "vocab.txt")
    text.write_corpus(tmp_path / "corpus.txt", 7)
    documents, vocab = instances.read_documents(
        str(tmp_path / "corpus.txt"), str(tmp_path / "vocab.txt")
    )
    assert len(documents) == 7
    figures = instances.measure(
        documents, vocab, InstanceSettings(max_seq_length=31), runs=1
    )
    assert figures["instances_per_second"] > 0
    assert figures["ratio_to_the_original"] > 0
    assert figures["remasked_rows_per_second"] > 0


@pytest.mark.long
def test_records_are_timed(tmp_path):
    text.write_vocabulary(tmp_path / "vocab.txt")
    text.write_corpus(tmp_path / "corpus.txt", 7)
    figures = records.measure(
        records.ROOT / "create_pretraining_data.py",
        str(tmp_path / "corpus.txt"),
        [f"--vocab_file={tmp_path / 'vocab.txt'}"],
        str(tmp_path / "records.tfrecord"),
    )
    assert figures["instances_per_second"] > 0
    assert figures["peak_megabytes_of_a_process"] > 0


@pytest.mark.long
def test_a_long_line_is_timed(tmp_path):
    text.write_vocabulary(tmp_path / "vocab.txt")
    (found,) = long_line.measure(str(tmp_path / "vocab.txt"), (2_000,), 1)
    assert found["what"].endswith("2,000 words")
    assert found["seconds"] > 0
    assert found["beyond_import"][0] < found["seconds"]


def test_a_vocabulary_is_timed(tmp_path):
    # Enough text that both are still running when their memory is read.
    text.write_corpus(tmp_path / "source.txt", 20_000)
    figures = vocabulary.measure(
        str(tmp_path / "source.txt"), str(tmp_path), 150, runs=1
    )
    assert figures["ratio"] > 0
    assert 10 < figures["peer_peak_megabytes"] < 1000
    assert 10 < figures["peak_megabytes"] < 1000


def test_memory_is_summed_over_all_processes():
    child = "b = b'x' * 60_000_000; sum(range(10**7))"
    command = f"[sys.executable, '-c', {child!r}]"
    parent = "import subprocess, sys; b = b'x' * 70_000_000; "
    parent += f"subprocess.run({command})"
    _, peak = vocabulary.run([sys.executable, "-c", parent])
    assert 130 < peak < 230


def test_a_process_takes_its_turns(monkeypatch):
    """A process answers each turn; one that fails reports why."""
    start = "from benchmarks.peers.serve import serve; "
    make = "lambda: (lambda *x: sum(x), {'sum': '1.0'})"
    programs = {
        "ours": f"{start}print('noise'); serve({make})",
        "keras_hub": f"{start}raise ValueError('no such thing')",
    }
    monkeypatch.setattr(
        peers_in_turns,
        "command_of",
        lambda system: [sys.executable, "-c", programs[system]],
    )
    first, failed = peers_in_turns.measure(
        "infer", "config", 2, [11], names=("ours/a/b", "keras_hub/a/b"), runs=1
    )
    assert first["value"] == 2 + 11
    assert first["sum"] == "1.0"
    assert first["ratio"] == 1
    assert first["peak_megabytes"] > 1
    assert failed["failed"] == ["ValueError: no such thing"]


def test_ratios_are_those_of_turns():
    class Named:
        versions = {}

        def __init__(self, name):
            self.name = name

    seconds = {"a": [1, 2, 4], "b": [3, 4, 20]}
    found = {
        name: [{"seconds": x, "value": 0, "peak_megabytes": 7} for x in values]
        for name, values in seconds.items()
    }
    lines = peers_in_turns.compare([Named("a"), Named("b")], found)
    assert [line["seconds"] for line in lines] == [2, 4]
    assert lines[1]["ratio"] == 3
    assert lines[1]["ratio_min_max"] == [2, 5]


@pytest.mark.long
def test_own_step_trains_and_infers(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(small.config().to_json())
    step, _ = own_step.make("train", path, "float32", "remat", B, S, P)
    assert 5 < float(step()) < 15
    infer, _ = own_step.make("infer", path, "float32", "fused")
    assert abs(float(infer(B, S))) < 100


@pytest.mark.long
def test_packed_rows_are_timed(tmp_path):
    text.write_vocabulary(tmp_path / "vocab.txt")
    text.write_corpus(tmp_path / "corpus.txt", 23)
    paths = [str(tmp_path / f"{name}.tfrecord") for name in ("plain", "packed")]
    for path, packed in zip(paths, ("nopack", "pack"), strict=True):
        create_pretraining_data.main(
            [
                "",
                f"--{packed}_sequences",
                f"--input_file={tmp_path}/corpus.txt",
                f"--vocab_file={tmp_path}/vocab.txt",
                f"--output_file={path}",
                "--max_seq_length=61",
                "--max_predictions_per_seq=11",
            ]
        )
    config = small.config(max_position_embeddings=61, num_hidden_layers=1)
    figures = packing.measure(*paths, config, 2, steps=1, runs=1)
    assert figures["packed"]["full"] > figures["unpacked"]["full"] > 0
    assert 0 <= figures["packed"]["waited"] < 1
    assert figures["ratio"] > 0


@pytest.mark.long
@pytest.mark.slow
def test_growth_is_measured():
    sizes = {**scaling.START, "H": 64, "L": 1}
    config = scaling.config_of(sizes, vocab_size=V)
    assert (config.num_attention_heads, config.intermediate_size) == (1, 256)
    found = scaling.measure(config, B, S, runs=1)
    assert found["seconds"] > 0
    masked = round(0.15 * S)
    assert found["gflop"] * 1e9 == flops.nominal(config, B, S, masked)


@pytest.mark.long
def test_a_profile_lists_the_operations_of_a_step():
    config = small.config(hidden_size=128, num_attention_heads=2)
    figures = step_profile.measure(config, B, S, P)
    shares = figures["shares"]
    assert {"matrix products", "compiled programs"} <= shares.keys()
    assert 0.5 < sum(shares.values()) <= 1.01


@pytest.mark.long
def test_variants_are_trained_and_their_checkpoints_fine_tuned(
    tmp_path, capsys
):
    """Every variant; what is trained on one row is a classifier too."""
    text.write_vocabulary(tmp_path / "vocab.txt")
    text.write_corpus(tmp_path / "corpus.txt", 150)
    config = tmp_path / "config.json"
    config.write_text(small.config(max_position_embeddings=512).to_json())
    rows = "sentence\tlabel\n" + "the cat sees .\t0\nred dog .\t1\n" * 20
    (tmp_path / "SST-2").mkdir()
    for name in ("train", "dev"):
        (tmp_path / "SST-2" / f"{name}.tsv").write_text(rows)

    def lines():
        return [json.loads(x) for x in capsys.readouterr().out.splitlines()]

    names = list(experiments.VARIANTS)
    paths = [str(tmp_path / x) for x in ("vocab.txt", "config.json")]
    folder = str(tmp_path / "runs")
    corpus = str(tmp_path / "corpus.txt")
    experiments.pretrain(corpus, *paths, folder, 2, 1, 2, names)
    found = lines()
    assert {x["what"] for x in found} == {f"pre-training, {x}" for x in names}
    assert all(1 < x["masked_lm_loss"] < 10 for x in found)
    run = f"{folder}/as_in_the_paper_1"
    experiments.finetune(run, *paths, str(tmp_path), 2, ["sst2"])
    found = lines()
    assert {x["from"] for x in found} == {"random weights", "model.ckpt-2"}
    assert all(0 <= x["eval_accuracy"] <= 1 for x in found)
