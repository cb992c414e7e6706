"""The benchmarks run at toy sizes; a figure of each is a positive number."""

import json
import pathlib
import shutil

import numpy as np
import pytest

import create_pretraining_data
import run_classifier
from benchmarks import (
    ahead_of_time,
    by_seed,
    checkpoint_save,
    determinism,
    experiments,
    features,
    finetuning,
    glue,
    gpu_steps,
    guard,
    instances,
    long_line,
    packing,
    peers_in_turns,
    preemptions,
    pretraining_step,
    records,
    scaling,
    serving,
    serving_load,
    squad,
    startup,
    step_profile,
    text_ops,
    tokenization,
    transformers_trainer,
    vocabulary,
)
from common import tensor_files
from data.pretraining.settings import InstanceSettings
from modeling import checkpoints, models
from tests.helpers import classifier_files, killed_runs, small, squad_files
from tests.helpers import text as texts
from tests.helpers.small import B, P, S, V

pytestmark = pytest.mark.long
PEERS = pathlib.Path(__file__).parents[2] / ".venv-peers"
LINES = ["the cats see a dog .", "a bird, a fish"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Small files of all kinds; lengths that are fixed in a benchmark."""
    classifier_files.write_model(tmp_path)
    classifier_files.write_task(tmp_path)
    texts.write_corpus(tmp_path / "corpus.txt", 150)
    (tmp_path / "lines.txt").write_text("".join(f"{x}\n" for x in LINES))
    (tmp_path / "config.json").write_text(small.config().to_json())
    for module in (glue, squad, startup):
        monkeypatch.setattr(module, "MAX_SEQ_LENGTH", small.POSITIONS)
    monkeypatch.setattr(squad, "MAX_QUERY_LENGTH", 4)
    monkeypatch.setattr(squad, "DOC_STRIDE", 3)
    monkeypatch.setattr(gpu_steps, "MATMUL_SIZE", 13)
    monkeypatch.setattr(gpu_steps, "CALL", 2)
    return tmp_path


def run_experiments(folder):
    rows = "sentence\tlabel\n" + "the cat sees .\t0\nred dog .\t1\n" * 20
    (folder / "SST-2").mkdir()
    for name in ("train", "dev"):
        (folder / "SST-2" / f"{name}.tsv").write_text(rows)
    config = small.config(max_position_embeddings=512).to_json()
    (folder / "config.json").write_text(config)
    paths = [str(folder / x) for x in ("vocab.txt", "config.json")]
    names, runs = list(experiments.VARIANTS), str(folder / "runs")
    corpus = str(folder / "corpus.txt")
    experiments.pretrain(corpus, *paths, runs, 2, 1, 2, names)
    run = f"{runs}/as_in_the_paper_1"
    experiments.finetune(run, *paths, str(folder), 2, ["sst2"])


def run_finetuning(folder):
    named = classifier_files.flags_of(folder)
    named |= {"output_dir": folder / "run", "num_train_epochs": 1}
    words = [f"--{name}={value}" for name, value in named.items()]
    run_classifier.main(["run_classifier", "--do_train", *words])
    return finetuning.measure(
        "classifier",
        str(folder / "run" / "train.tf_record"),
        str(folder),
        small.POSITIONS,
        classifier_files.TRAIN,
        runs=1,
    )


def run_instances(folder):
    documents, vocab = instances.read_documents(
        str(folder / "corpus.txt"), str(folder / "vocab.txt")
    )
    settings = InstanceSettings(max_seq_length=31)
    return instances.measure(documents, vocab, settings, runs=1)


def run_packing(folder):
    paths = [str(folder / f"{name}.tfrecord") for name in ("plain", "packed")]
    for path, packed in zip(paths, ("nopack", "pack"), strict=True):
        words = [f"--{packed}_sequences", "--max_predictions_per_seq=11"]
        words += ["--max_seq_length=61", f"--vocab_file={folder}/vocab.txt"]
        words += [f"--input_file={folder}/corpus.txt", f"--output_file={path}"]
        create_pretraining_data.main(["", *words])
    config = small.config(max_position_embeddings=61, num_hidden_layers=1)
    return packing.measure(*paths, config, 2, steps=1, runs=1)


def run_preemptions(folder):
    killed_runs.write_files(folder)
    paths = f"{folder}/train.tfrecord", f"{folder}/config.json"
    return preemptions.measure(*paths, 31, 2)


def run_squad(folder, monkeypatch):
    paths = [
        squad_files.write(folder / f"{name}.json", 31, seed, version_2=True)
        for seed, name in enumerate(("train", "dev"))
    ]

    def logits(peer, train, held_out, names, **settings):
        zeros = np.zeros((len(held_out), small.POSITIONS), np.float32)
        return {"seconds": 1.0, "command_seconds": 2.0}, (zeros, zeros)

    monkeypatch.setattr(transformers_trainer, "logits", logits)
    return squad.measure(*paths, str(folder), 1, [1], ("python", "folder"))


def run_startup(folder):
    shutil.copytree(folder, folder / "quickstart" / "run")
    config = small.config(vocab_size=len(texts.VOCABULARY))
    named = checkpoints.model_variables(models.build_pretraining_model(config))
    weights = {name: np.array(v) for name, v in named.items()}
    quickstart = folder / "quickstart"
    tensor_files.write(str(quickstart / "run" / "bert_model.ckpt"), weights)
    export = classifier_files.write_export(folder)
    pathlib.Path(export).rename(quickstart / "packages_export")
    rows = "sentence\tpackage\nthe cat\tyes\na dog\tno\n" + "the dog\tno\n" * 40
    (quickstart / "packages_train.tsv").write_text(rows)
    return startup.measure(str(quickstart), str(folder), runs=1)


def run_serving_load(folder):
    model = classifier_files.write_export(folder)
    lines = str(folder / "lines.txt")
    return list(serving_load.measure(model, lines, 0.5, clients=(1, 3)))


def run_steps_on_a_device(folder):
    words = ["remat", "deterministic", "parts=2"]
    sizes, path = (2 * B, S, P), str(folder / "config.json")
    return gpu_steps.measure(path, sizes, "float32", words, runs=1)


RUNS = {
    "checkpoint_save": lambda folder: checkpoint_save.measure(
        small.config(max_position_embeddings=17), 2, str(folder)
    ),
    "determinism": lambda folder: determinism.measure(
        small.config(), B, S, P, runs=1
    ),
    "experiments": run_experiments,
    "features": lambda folder: features.measure(
        str(folder / "lines.txt"), str(folder), small.POSITIONS, runs=1
    ),
    "finetuning": run_finetuning,
    "glue": lambda folder: glue.measure(
        "mrpc", str(folder), str(folder), 1, by_seed.numbers("2-3")
    ),
    "gpu_steps": run_steps_on_a_device,
    "guard": lambda folder: guard.measure(small.config(), B, S, P, runs=1),
    "instances": run_instances,
    "long_line": lambda folder: long_line.measure(
        str(folder / "vocab.txt"), (2_000,), 1
    ),
    "packing": run_packing,
    "peers_in_turns": lambda folder: peers_in_turns.measure(
        "infer",
        str(folder / "config.json"),
        B,
        [S],
        names=("ours/float32/fused",),
        runs=1,
    ),
    "preemptions": run_preemptions,
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
    "startup": run_startup,
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


def test_squads_scores_beside_those_of_a_peer(folder, monkeypatch):
    figures = run_squad(folder, monkeypatch)
    for side in ("ours", "transformers"):
        (least,), (f1,) = (figures[side][x]["values"] for x in ("exact", "f1"))
        assert 0 <= least <= f1 <= 100


@pytest.mark.parametrize(
    ("kind", "device", "parts"), [("gpu", "h100", 1), ("tpu", "v5e", 2)]
)
def test_a_step_for_a_device_has_none_of_what_is_counted(
    tmp_path, kind, device, parts
):
    """Uses the compilers that `make gpu` and `make tpu` install.

    The network has two layers, so that attention scores that are kept after
    their layer are counted twice. A TPU's copies into its fast memory look like
    copies of weights.
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
        (16 * parts, 512, 77),
        "bfloat16",
        [f"parts={parts}"],
    )
    assert found["float64"] == found["host_transfers"] == 0
    assert found["scores_held"] <= (device == "v5e")
    if device == "h100":
        assert found["weight_copies"] == 0
    assert found["all_reduces"] == 1
    assert found["temporary_bytes"] > 0
    # The new weights and moments take the memory of the old ones.
    assert found["alias_bytes"] > 0.95 * found["argument_bytes"]
    assert found["teraflop"] == pytest.approx(
        found["teraflop_by_formula"], rel=0.2
    )
