"""The benchmarks of fine-tuning and serving run at toy sizes."""

import json
import pathlib
import shutil
import statistics

import numpy as np
import pytest

import run_classifier
from benchmarks import (
    ahead_of_time,
    by_seed,
    finetuning,
    first_questions,
    glue,
    serving,
    serving_load,
    squad,
    startup,
    transformers_trainer,
)
from common import tensor_files
from data import features
from modeling import checkpoints, models
from tests.helpers import classifier_files, small, squad_files, text

pytestmark = pytest.mark.long
PEERS = pathlib.Path(__file__).parents[2] / ".venv-peers"
S = small.POSITIONS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmarks")
    classifier_files.write_model(folder)
    classifier_files.write_task(folder)
    return folder


def test_a_glue_tasks_score_is_that_of_the_script(folder, monkeypatch, capsys):
    monkeypatch.setattr(glue, "MAX_SEQ_LENGTH", S)
    seeds = by_seed.numbers("2-3")
    found = glue.measure("mrpc", str(folder), str(folder), 1, seeds)
    runs = [json.loads(x) for x in capsys.readouterr().out.splitlines()]
    assert [(x["side"], x["seed"]) for x in runs] == [("ours", 2), ("ours", 3)]
    assert list(by_seed.numbers("2")) == [1, 2]
    values = [x["accuracy"] for x in runs]
    assert found["ours"]["accuracy"]["values"] == values
    mean, deviation = statistics.mean(values), statistics.pstdev(values)
    assert found["ours"]["accuracy"]["mean"] == pytest.approx(mean, abs=1e-4)
    assert found["ours"]["accuracy"]["deviation"] == pytest.approx(
        deviation, abs=1e-4
    )
    assert found["ours"]["seconds"] > 0


@pytest.mark.parametrize("version_2", [False, True])
def test_squads_scores_are_those_of_the_script(folder, monkeypatch, version_2):
    """Ours, and those of a peer with constant logits."""
    monkeypatch.setattr(squad, "MAX_SEQ_LENGTH", S)
    monkeypatch.setattr(squad, "MAX_QUERY_LENGTH", 4)
    monkeypatch.setattr(squad, "DOC_STRIDE", 3)
    paths = [
        squad_files.write(
            folder / f"{name}.json", 31, seed, version_2=version_2
        )
        for seed, name in enumerate(("train", "dev"))
    ]
    scored = []

    def logits(peer, train, held_out, names, **settings):
        assert len(train) >= 31 and set(names) == {
            features.START_POSITIONS,
            features.END_POSITIONS,
        }
        scored.append(len(held_out))
        constant = np.zeros((len(held_out), S), np.float32)
        times = {"seconds": 1.0, "command_seconds": 2.0}
        return times, (constant, constant)

    monkeypatch.setattr(transformers_trainer, "logits", logits)
    found = squad.measure(*paths, str(folder), 1, [1], ("python", "folder"))
    exact = "exact" if version_2 else "exact_match"
    for side in ("ours", "transformers"):
        (least,), (f1,) = (found[side][x]["values"] for x in (exact, "f1"))
        assert 0 <= least <= f1 <= 100
    assert scored[0] >= 31


def test_the_first_questions_keep_their_paragraphs():
    """Two articles of two paragraphs of three questions."""

    def paragraph(number):
        questions = [{"id": f"{number} {i}"} for i in range(3)]
        return {"context": f"text {number}", "qas": questions}

    articles = [
        {"title": "a", "paragraphs": [paragraph(0), paragraph(1)]},
        {"title": "b", "paragraphs": [paragraph(2), paragraph(3)]},
    ]
    whole = {"version": "1.1", "data": articles}
    assert first_questions.first(whole, 12) == whole
    for number, kept in ((6, [3, 3]), (7, [3, 3, 1]), (2, [2])):
        found = first_questions.first(whole, number)
        assert found["version"] == "1.1"
        assert len(found["data"]) == (len(kept) + 1) // 2
        paragraphs = [
            x for article in found["data"] for x in article["paragraphs"]
        ]
        expected = [
            {**paragraph(i), "qas": paragraph(i)["qas"][:count]}
            for i, count in enumerate(kept)
        ]
        assert paragraphs == expected


def test_an_epoch_by_length_is_timed_beside_a_padded_one(folder, run_script):
    flags = classifier_files.flags_of(folder)
    flags |= {"output_dir": folder / "run", "num_train_epochs": 1}
    code, _, err = run_script(run_classifier, "--do_train", **flags)
    assert code == 0, err
    figures = finetuning.measure(
        "classifier",
        str(folder / "run" / "train.tf_record"),
        str(folder),
        S,
        classifier_files.TRAIN,
        runs=1,
    )
    assert figures["examples"] == classifier_files.TRAIN
    assert set(figures["beside"]) == {"padded"}
    assert 0 < figures["full"] < 1


def test_an_export_is_timed(tmp_path):
    (tmp_path / "lines.txt").write_text("the cat sees\na dog\n" * 19)
    model = classifier_files.write_export(tmp_path)
    figures = serving.measure(model, str(tmp_path / "lines.txt"), runs=1)
    assert figures["texts"] == 2 * 19
    assert figures["seconds"]["ours"] > 0
    # Also if all texts have one label.
    own = serving.ExportedClassifier(model, ["the cat sees"])
    assert own.names == ["no", "yes", "maybe"]


def test_start_up_is_timed_beside_an_import(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(startup, "MAX_SEQ_LENGTH", S)
    shutil.copytree(folder, tmp_path / "run")
    config = small.config(vocab_size=len(text.VOCABULARY))
    named = checkpoints.model_variables(models.build_pretraining_model(config))
    weights = {name: np.array(v) for name, v in named.items()}
    tensor_files.write(str(tmp_path / "run" / "bert_model.ckpt"), weights)
    export = classifier_files.write_export(tmp_path)
    pathlib.Path(export).rename(tmp_path / "packages_export")
    rows = "sentence\tpackage\nthe cat\tyes\na dog\tno\n"
    (tmp_path / "packages_train.tsv").write_text(rows + "the dog\tno\n" * 40)
    found = startup.measure(str(tmp_path), str(folder), runs=1)
    names = ["fill_mask.py", "predict.py", "first step of run_classifier.py"]
    assert [x["what"] for x in found] == names
    assert all(x["import_seconds"] > 0.5 for x in found)
    assert found[2]["seconds"] > found[2]["import_seconds"]
    (tmp_path / "packages_train.tsv").unlink()
    with pytest.raises(SystemExit, match="run_classifier.py failed"):
        startup.measure(str(tmp_path), str(folder), runs=1)


def test_a_server_is_loaded_beside_the_bare_model(tmp_path):
    (tmp_path / "lines.txt").write_text("the cat sees\na dog\n")
    lines = str(tmp_path / "lines.txt")
    model = classifier_files.write_export(tmp_path)
    found = list(serving_load.measure(model, lines, 0.5, clients=(1, 3)))
    assert [(x["side"], x["clients"]) for x in found] == [
        ("serve.py", 1),
        ("bare", 1),
        ("serve.py", 3),
        ("bare", 3),
    ]
    for figures in found:
        assert figures["failed"] == figures["other_labels"] == 0
        assert 0 < figures["p50_ms"] <= figures["p99_ms"]


def test_a_step_is_a_program_for_the_compiler(tmp_path, monkeypatch):
    """With its sums over eight replicas; the compiler is a stand-in."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(vars(small.config(num_hidden_layers=1))))
    python = tmp_path / "python"
    figures = {
        "product_flops": 197e9,
        "argument_bytes": 3e9,
        "alias_bytes": 1e8,
        "temporary_bytes": 5e8,
        "words": "$3 $4 $5",
    }
    text = "\nENTRY %main {\n  %a.1 = f32[7]{0} all-reduce(%b)\n}\n"
    (tmp_path / "text").write_text(text)
    python.write_text(
        "#!/bin/sh\n"
        f"cp $2 {tmp_path}/module.hlo\ncp {tmp_path}/text $6\n"
        f"echo noise\ncat <<END\n{json.dumps(figures)}\nEND\n"
    )
    python.chmod(0o755)
    found = ahead_of_time.measure(
        str(python),
        "v5e",
        8,
        str(path),
        (16, small.S, small.P),
        "bfloat16",
        ["remat", "parts=2"],
    )
    assert found["words"] == "tpu v5e:2x4 8"
    assert found["gigabytes"] == 3.5
    # Two parts; 100 MB read and written take less.
    assert found["least_milliseconds"] == 2.0
    assert found["all_reduces"] == 1
    program = (tmp_path / "module.hlo").read_bytes()
    assert program.count(b"all-reduce") > 1
    assert program.count(b"opt-barrier") > 1
    assert b"f64" not in program


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
