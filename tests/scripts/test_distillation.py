"""--teacher, --unlabelled_file and --keep_layers, end to end."""

import json
import os
import re
import signal

import numpy as np
import pytest
from scipy import special

import run_classifier
import run_similarity
from bert.common.formats import tensor_files
from bert.inference.predictor import Predictor
from bert.modeling import networks
from bert.modeling.formats import kept_layers
from bert.models.text_classifier import TextClassifier
from bert.training.trainer import Trainer
from tests.helpers import model_files, trained

pytestmark = pytest.mark.slow
LABELS = trained.LABELS


@pytest.fixture
def student(tmp_path_factory, run_script, tmp_path):
    """Trains a student of a shared run; returns its folder."""
    trained.folder(tmp_path_factory, "labels")  # not in the time of a case

    def train(name, *words, code=0, **named):
        run = trained.folder(tmp_path_factory, name).run
        script = run_similarity if name == "vectors" else run_classifier
        flags = {**trained.TASKS[name][1], "teacher": run}
        for key in ("do_eval", "calibrate", "tune_thresholds", "eval_file"):
            flags.pop(key, None)
        flags.pop("predict_file")
        flags |= {
            "bert_config_file": run.parent / "bert_config.json",
            "vocab_file": run.parent / "vocab.txt",
            "init_checkpoint": run.parent / "bert_model.ckpt",
            "max_seq_length": trained.S,
            "num_train_epochs": 3,
            "train_batch_size": 5,
            "train_file": run.parent / "train.jsonl",
            "output_dir": tmp_path / "student",
            "do_train": True,
            "report": False,
            **named,
        }
        flags = {k: v for k, v in flags.items() if v is not None}
        found, out, err = run_script(script, *words, **flags)
        assert found == code, err
        return tmp_path / "student", out + err

    return train


def weights(run):
    """Those of the last checkpoint."""
    steps = [int(x.stem.split("-")[1]) for x in run.glob("*.index")]
    return tensor_files.read(str(run / f"model.ckpt-{max(steps)}"))


def test_weight_0_gives_the_bits_of_a_run_without_a_teacher(
    student, tmp_path, tmp_path_factory
):
    """The outputs of the teacher are stored all the same."""
    once = {"num_train_epochs": 1}
    run, _ = student("labels", distill_weight=0, **once)
    student("labels", teacher=None, output_dir=tmp_path / "alone", **once)
    expected = weights(tmp_path / "alone")
    found = weights(run)
    assert found.keys() == expected.keys()
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name])

    (path,) = run.glob("teacher-*.npy")
    teacher = trained.folder(tmp_path_factory, "labels").run
    predictor = Predictor.open(str(teacher))
    texts = [{"text": a, "text_b": b} for a, b in trained.SINGLE]
    outputs = [x for _, x in predictor.compute(predictor.encode(texts))]
    np.testing.assert_allclose(np.load(path), outputs, atol=1e-5)


def test_runs_of_seeds_share_the_outputs(student, tmp_path):
    file = tmp_path / "dev.jsonl"
    rows = [{"text": x, "label": y} for x, y in zip("abc", LABELS)]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    run, log = student("labels", "--do_eval", num_seeds=2, eval_file=file)
    (path,) = run.rglob("teacher-*.npy")
    assert path.parent == run
    assert log.count(f"outputs of the teacher: {path}") == 1


def test_damaged_outputs_are_computed_again(student):
    once = {"num_train_epochs": 1}
    run, _ = student("labels", **once)
    (path,) = run.glob("teacher-*.npy")
    expected = np.load(path)
    for other in run.iterdir():  # as if it was killed before a checkpoint
        if other != path:
            other.unlink()
    np.save(path, expected[1:])
    _, log = student("labels", **once)
    assert f"warning: {path} is damaged: the outputs are computed again" in log
    np.testing.assert_allclose(np.load(path), expected, atol=1e-6)


def test_a_resumed_run_ends_with_the_same_bits(student, tmp_path, monkeypatch):
    student("labels", output_dir=tmp_path / "straight")
    save = Trainer.save

    def stop(state):
        if state.step == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return save(state)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "save", stop)
        student("labels", code=75, save_checkpoints_steps=2)
    run, log = student("labels", save_checkpoints_steps=2)
    assert "outputs of the teacher: " in log
    expected = weights(tmp_path / "straight")
    for name, value in weights(run).items():
        np.testing.assert_array_equal(value, expected[name])


def test_a_run_with_another_order_of_labels_computes_its_outputs(student):
    """The first one was killed before it wrote a checkpoint."""
    once = {"num_train_epochs": 1}
    run, _ = student("labels", **once)
    for path in run.iterdir():
        if not path.match("teacher-*.npy"):
            path.unlink()
    student("labels", labels=",".join(reversed(LABELS)), **once)
    first, second = map(np.load, run.glob("teacher-*.npy"))
    np.testing.assert_allclose(first, second[:, ::-1], atol=1e-6)


def test_another_teacher_is_an_error_when_a_run_resumes(
    student, tmp_path_factory
):
    run, _ = student("labels")
    other = trained.folder(tmp_path_factory, "labels").export
    _, log = student("labels", code=2, teacher=other)
    message = "holds a run with other training data or another --teacher"
    assert f"error: {run}: {message}" in log


@pytest.mark.parametrize("kind", ["several", "numbers"])
def test_texts_without_labels_are_learned(student, kind, tmp_path):
    file = tmp_path / "more.txt"
    file.write_text("".join(f"{x} the cat\n" for x in "abcdefg"))
    run, _ = student(kind, unlabelled_file=file)
    (path,) = run.glob("teacher-*.npy")
    count = len(trained.SINGLE) + 7
    assert len(np.load(path)) == count
    assert weights(run)["global_step"] == count // 5 * 3


def logits_of(model, texts):
    predictor = model._predictor()
    encoded = predictor.encode([{"text": x} for x in texts])
    return np.array([x for _, x in predictor.compute(encoded)], "f8")


@pytest.mark.parametrize("has_labels", [True, False])
def test_the_class_has_the_loss_of_a_teacher(
    tmp_path_factory, has_labels, monkeypatch
):
    """The labels of the teacher are in another order."""
    monkeypatch.setattr(networks, "POOLED_DROPOUT", 0.0)
    run = trained.folder(tmp_path_factory, "labels").run
    order = [2, 0, 1]
    labels, texts = [LABELS[i] for i in order], trained.TEXTS[:3]
    teacher = TextClassifier(str(run))
    model = TextClassifier(str(run.parent), labels, max_length=trained.S)
    before = logits_of(model, texts)
    history = model.fit(
        texts,
        labels if has_labels else None,
        sample_weight=[1.0, 2.0, 0.5],
        teacher=teacher,
        distill_weight=0.3,
        distill_temperature=3.0,
        epochs=1,
        shuffle=False,
        verbose=0,
    )
    wanted = logits_of(teacher, texts)[:, order] / 3
    p, q = special.softmax(wanted, -1), special.softmax(before / 3, -1)
    soft = 9 * (p * np.log(p / q)).sum(-1)
    hard = -np.diag(special.log_softmax(before, -1))
    share = 0.3 if has_labels else 1.0
    each = np.array([1.0, 2.0, 0.5]) * ((1 - share) * hard + share * soft)
    expected = each.mean()
    np.testing.assert_allclose(history.history["loss"], expected, rtol=1e-4)


def test_the_class_learns_numbers_of_a_teacher(tmp_path_factory, monkeypatch):
    monkeypatch.setattr(networks, "POOLED_DROPOUT", 0.0)
    run = trained.folder(tmp_path_factory, "numbers").run
    teacher, texts = TextClassifier(str(run)), trained.TEXTS[:3]
    model = TextClassifier(
        str(run.parent), regression=True, max_length=trained.S
    )
    before = logits_of(model, texts)
    history = model.fit(
        texts, epochs=1, teacher=teacher, shuffle=False, verbose=0
    )
    expected = ((logits_of(teacher, texts) - before) ** 2).mean()
    np.testing.assert_allclose(history.history["loss"], expected, rtol=1e-4)


def test_embeddings_of_a_teacher_are_learned(student, tmp_path_factory):
    run, _ = student(
        "vectors", num_train_epochs=12, learning_rate=0.01, train_batch_size=9
    )
    start = run.parent / "start"
    student("vectors", num_train_epochs=1, learning_rate=0, output_dir=start)
    wanted = trained.folder(tmp_path_factory, "vectors").run
    found, before, expected = (
        np.array(Predictor.open(str(x))([{"text": "a tree"}])[0]["vector"])
        for x in (run, start, wanted)
    )
    assert found @ expected > before @ expected


@pytest.mark.parametrize(
    ("given", "kept"),
    [("1", (0,)), ("2", (0, 5)), ("3", (0, 2, 5)), ("4", (0, 2, 3, 5))]
    + [("6", (0, 1, 2, 3, 4, 5)), ("4,1", (4, 1))],
)
def test_a_number_of_layers_is_evenly_spaced(given, kept):
    assert kept_layers.read(tuple(given.split(",")), 6, "config") == kept


@pytest.fixture
def five_layers(tmp_path):
    """A checkpoint of five layers: its values, and flags to start from it."""
    config = model_files.write_sizes(
        tmp_path,
        tokens=trained.tokens(),
        max_position_embeddings=trained.POSITIONS,
        num_hidden_layers=5,
    )
    values = model_files.random_values(networks.build_encoder(config), 0.4)
    tensor_files.write(str(tmp_path / "bert_model.ckpt"), values)
    start = {"init_checkpoint": tmp_path, "bert_config_file": None}
    return values, start


def test_a_student_has_the_kept_layers_of_its_start(student, five_layers):
    values, start = five_layers
    run, _ = student(
        "labels", keep_layers="3", learning_rate=0, num_train_epochs=1, **start
    )
    found = weights(run)
    layers = {0: 0, 1: 2, 2: 4}
    for name, value in values.items():
        if match := re.search(r"layer_(\d)", name):
            if int(match[1]) not in layers.values():
                continue
            (new,) = [n for n, old in layers.items() if old == int(match[1])]
            name = name.replace(match[0], f"layer_{new}")
        np.testing.assert_array_equal(found[name], value)
    assert not any("layer_3" in name for name in found)
    config = json.loads((run / "bert_config.json").read_text())
    assert config["num_hidden_layers"] == 3

    for layers in ("0,5", "1,1"):
        _, log = student("labels", code=2, keep_layers=layers, **start)
        expected = "different layers from 0 to 4, or one number from 1 to 5"
        assert f"--keep_layers={layers}; expected {expected}" in log


def test_a_later_command_reads_the_kept_layers(student, five_layers, tmp_path):
    """With --init_checkpoint, as the command that trained has it."""
    _, start = five_layers
    start |= {"teacher": None, "num_train_epochs": 1}
    run, _ = student("labels", keep_layers="3", **start)
    dev = tmp_path / "dev.jsonl"
    dev.write_text(json.dumps({"text": "a", "label": LABELS[0]}) + "\n")
    evaluates = {"do_train": None, "do_eval": True, "eval_file": dev}
    _, log = student("labels", **start | evaluates)
    assert "eval_accuracy = " in log

    # And a command that trains, which records them again.
    student("labels", keep_layers="3", **start)
    student("labels", **start | evaluates)

    # The run may be its own start, and the start of another one.
    steps = len(trained.SINGLE) // 5
    for path, output in (
        (f"{run}/", run),
        (run / f"model.ckpt-{steps}", run),
        (run, tmp_path / "other"),
    ):
        more = start | {"init_checkpoint": path, "output_dir": output}
        student("labels", **more | evaluates)
