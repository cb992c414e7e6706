"""run_pretraining from records to checkpoints, results and curves."""

import contextlib
import io
import json
import re
import shutil

import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import (
    EventAccumulator,
)
from tensorflow.tsl.profiler.protobuf import xplane_pb2

import run_pretraining
from bert.common.formats import tensor_files
from bert.data.records import reader
from bert.modeling import networks
from bert.training import training_loop
from bert.training.saver import Saver
from tests.helpers import pretraining_runs, run_folders, small
from tests.helpers.pretraining_files import (
    VOCABULARY,
    assert_same_bits,
    losses,
    tensors,
)
from tests.helpers.small import P, S

pytestmark = pytest.mark.slow
STEPS = {"num_train_steps": 4, "eval_steps": 3, "save_checkpoints_steps": 2}


@pytest.mark.long
def test_a_plan_of_a_run_writes_nothing(pretrain, tmp_path):
    output = tmp_path / "run"
    out, _ = pretrain(output, "--dry_run", num_train_steps=9_000)
    assert not output.exists()
    model = networks.build_pretraining_model(small.config())
    size = sum(x.shape.num_elements() for x in model.trainable_weights)
    memory, batch, hours = out.splitlines()
    assert memory.startswith(f"{size:,} parameters trained: ")
    largest = re.fullmatch(
        r"batch of 4: .* MB of .*; about ([\d,]+) fit", batch
    )
    assert int(largest[1].replace(",", "")) > 4
    assert re.fullmatch(r"[\d.]+ s a step, .* steps take \d.*", hours)


@pytest.fixture(scope="module")
def log():
    """What the uninterrupted run writes to standard error."""
    return io.StringIO()


@pytest.fixture(scope="module")
def straight(tmp_path_factory, log):
    """A run that was never interrupted; tests look at copies of it."""
    folder = pretraining_runs.shared(tmp_path_factory)
    flags = pretraining_runs.flags_of(
        folder,
        tmp_path_factory.mktemp("straight") / "run",
        eval_input_file=folder / "held_out.tfrecord",
        **STEPS,
    )
    words = [f"--{name}={value}" for name, value in flags.items()]
    with contextlib.redirect_stderr(log):
        run_pretraining.main(["run_pretraining.py", "--do_train", *words])
    return flags["output_dir"]


@pytest.fixture
def four_steps(straight, tmp_path):
    return shutil.copytree(straight, tmp_path / "straight")


def profiled_steps(output):
    """Numbers of the steps in the profile."""
    (path,) = output.glob("plugins/profile/*/*.xplane.pb")
    space = xplane_pb2.XSpace.FromString(path.read_bytes())
    found = set()
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                if plane.event_metadata[event.metadata_id].name == "train":
                    for stat in event.stats:
                        name = plane.stat_metadata[stat.metadata_id].name
                        if name == "step_num":
                            found.add(stat.int64_value or stat.uint64_value)
    return sorted(found)


def test_two_steps_and_two_more_are_four(
    pretrain, four_steps, tmp_path, tmp_path_factory, monkeypatch
):
    """As if the run had died after its checkpoint of step 2, in step 3."""
    make, first = reader.training_batches, []

    def batches(files, num_records, schema, batch_size, seed, step, *rest):
        first.append(step)
        return make(files, num_records, schema, batch_size, seed, step, *rest)

    monkeypatch.setattr(reader, "training_batches", batches)
    output = shutil.copytree(four_steps, tmp_path / "resumed")
    shutil.rmtree(output / "best")
    for path in output.glob("model.ckpt-4*"):
        path.unlink()
    lines = (output / "metrics.jsonl").read_text().splitlines(keepends=True)
    (output / "metrics.jsonl").write_text("".join(lines[:3]) + lines[3][:9])
    _, err = pretrain(
        output,
        eval_input_file=pretraining_runs.shared(tmp_path_factory)
        / "held_out.tfrecord",
        profile_steps="2:3",
        **STEPS,
    )
    assert f"resuming from step 2 in {output}" in err
    assert first == [2]
    assert profiled_steps(output) == [3]
    assert losses(output) == losses(four_steps)
    assert_same_bits(
        tensors(output / "model.ckpt-4"), tensors(four_steps / "model.ckpt-4")
    )


def test_results_have_the_originals_keys(pretrain, four_steps):
    out, _ = pretrain(four_steps, "--nodo_train", "--do_eval")
    values = run_folders.results(four_steps)
    assert list(values) == [
        "global_step",
        "loss",
        "masked_lm_accuracy",
        "masked_lm_loss",
        "next_sentence_accuracy",
        "next_sentence_loss",
    ]
    assert values["global_step"] == 4
    both = values["masked_lm_loss"] + values["next_sentence_loss"]
    assert values["loss"] == pytest.approx(both)
    report = four_steps / "eval_report.json"
    assert out.endswith(f"wrote {four_steps}/eval_results.txt and {report}\n")
    found = json.loads(report.read_text())
    del values["global_step"]
    assert found["task"] == "pretraining" and found["metrics"] == values
    assert found["records"].endswith(".tfrecord") and found["step"] > 0
    assert found["references"]["masked_lm_loss/chance"] == np.log(small.V)
    assert len(found["references"]) == 5
    loss = values["masked_lm_loss"]
    assert f"masked_lm_loss = {loss:.6f} (chance {np.log(small.V):.6f}" in out


def test_held_out_text_is_evaluated_while_training(straight, log):
    steps = re.findall(r"step (\d) held out", log.getvalue())
    assert steps == ["3", "4"]
    points = run_folders.points(straight)
    held_out = [x for x in points if x["kind"] == "eval"]
    lowest = min(held_out, key=lambda line: line["loss"])
    assert Saver(str(straight / "best")).saved_steps() == [lowest["step"]]


def test_the_doctor_finds_nothing_wrong_in_a_run(diagnose, straight):
    code, found = diagnose(output_dir=straight)
    assert (code, found["wrong"]) == (0, [])
    fine = "\n".join(found["fine"])
    assert f"{straight}: undamaged checkpoints: 2, 4" in fine
    assert f"{straight}/model.ckpt-4: " in fine
    assert f"{straight}/metrics.jsonl: step 4, next_sentence_loss " in fine


def test_a_log_line_shows_each_objective(straight, log):
    lines = log.getvalue().splitlines()
    assert lines[0].startswith("device: CPU, ")
    assert lines[1] == "compiling the step ..."
    assert lines[2].endswith(" | compiled")
    line = next(x for x in lines if x.startswith("step 2/4"))
    assert re.fullmatch(
        r"step 2/4 \| loss \d\.\d{4} = "
        r"masked_lm \d\.\d{4} \(accuracy 0\.\d{4}\) \+ "
        r"next_sentence \d\.\d{4} \(accuracy \d\.\d{4}\) \| "
        r"lr 0\.0075 \| grad norm \d+\.?\d* \| "
        r"[\d.,]+ examples/s \| [\d.,]+ tokens/s \| "
        r"\d+ s left",
        line,
    )


def test_tensorboard_shows_the_curves(four_steps):
    events = EventAccumulator(str(four_steps)).Reload()
    assert set(events.Tags()["tensors"]) == {
        "loss",
        "masked_lm_loss",
        "masked_lm_accuracy",
        "next_sentence_loss",
        "next_sentence_accuracy",
        "learning_rate",
        "gradient_norm",
        "examples_per_second",
        "tokens_per_second",
    }
    points = events.Tensors("loss")
    shown = [float(tf.make_ndarray(point.tensor_proto)) for point in points]
    assert [point.step for point in points] == [1, 2, 3, 4]
    expected = [float.fromhex(loss) for loss in losses(four_steps)]
    np.testing.assert_allclose(shown, expected, rtol=1e-6)


def test_config_and_vocabulary_are_copied_to_the_run(four_steps):
    config = (four_steps / "bert_config.json").read_text()
    assert json.loads(config)["vocab_size"] == small.V
    vocab = (four_steps / "vocab.txt").read_text()
    assert vocab.split() == VOCABULARY
    description = json.loads((four_steps / "model.ckpt-4.json").read_text())
    assert description["settings"]["do_lower_case"] is False
    assert description["settings"]["max_seq_length"] == S
    assert description["settings"]["max_predictions_per_seq"] == P


def test_the_optimizer_of_a_checkpoint_continues_in_another_folder(
    pretrain, four_steps, tmp_path
):
    """As a run of the original, which leaves no description."""
    start = tmp_path / "original" / "model.ckpt-2"
    start.parent.mkdir()
    for path in four_steps.glob("model.ckpt-2.[di]*"):
        shutil.copy(path, start.parent)
    flags = {"init_checkpoint": start, "resume_optimizer": True}
    flags["num_train_steps"] = 4
    _, err = pretrain(tmp_path / "second", **flags)
    assert f"resuming from step 2 in {start}\n" in err
    ends = [x / "model.ckpt-4" for x in (tmp_path / "second", four_steps)]
    assert_same_bits(*map(tensors, ends))

    moments = ("/adam_m", "/adam_v", "global_step")
    values = tensor_files.read(str(start), moments)
    tensor_files.write(str(start), values)
    _, err = pretrain(tmp_path / "third", code=2, **flags)
    line = err.splitlines()[-1]
    assert line.startswith(f"error: {start}: has no global_step")
    assert line.endswith("omit --resume_optimizer")
    assert not (tmp_path / "third").exists()


def test_init_checkpoint_gives_weights_but_no_step(
    pretrain, four_steps, monkeypatch
):
    runs = []
    monkeypatch.setattr(training_loop, "fit", lambda run, *_: runs.append(run))
    _, err = pretrain(
        four_steps.parent / "started",
        init_checkpoint=four_steps / "model.ckpt-4",
        bert_config_file=None,  # the one beside it
        num_train_steps=1,
    )
    assert "all variables found" in err
    assert runs[0].step == 0
    expected = tensors(four_steps / "model.ckpt-4")
    for name, variable in runs[0].named.items():
        np.testing.assert_array_equal(variable, expected[name])
    moments = runs[0].train_step.optimizer.adam_v
    assert not any(np.any(x) for x in moments)


def test_sizes_are_compared_before_a_network_is_built(
    pretrain, four_steps, tmp_path, monkeypatch
):
    monkeypatch.setattr(networks, "build_pretraining_model", None)
    config = small.config(num_hidden_layers=99)
    (tmp_path / "config.json").write_text(config.to_json())
    _, err = pretrain(
        tmp_path / "run",
        code=2,
        init_checkpoint=four_steps / "model.ckpt-4",
        bert_config_file=tmp_path / "config.json",
    )
    assert "num_hidden_layers is 99 in the config, " in err


def test_a_checkpoint_of_another_network(pretrain, tmp_path):
    bias = {"bert/pooler/dense/bias": np.zeros(7, "f4")}
    Saver(str(tmp_path / "run")).save(3, bias, {})
    _, err = pretrain(tmp_path / "run", code=2, num_train_steps=7)
    line = err.splitlines()[-1]
    assert line.startswith(f"error: {tmp_path}/run: checkpoint 3 has ")
    assert "; pass another --output_dir" in line


def test_a_finished_run_says_so(pretrain, four_steps):
    out, err = pretrain(four_steps, num_train_steps=4)
    assert f"finished: {four_steps} is at step 4 of 4" in err
    assert out == ""


@pytest.mark.long
def test_variables_without_an_objective_stay(pretrain, tmp_path):
    words = "--do_eval", "--nouse_next_sentence"
    out, _ = pretrain(
        tmp_path / "run", *words, num_train_steps=2, save_checkpoints_steps=1
    )
    assert "masked_lm" in out
    assert "next_sentence_" not in out
    one, two = (tensors(tmp_path / "run" / f"model.ckpt-{n}") for n in (1, 2))
    same = {name for name in one if np.array_equal(one[name], two[name])}
    assert same == {
        "bert/pooler/dense/bias",
        "bert/pooler/dense/kernel",
        "cls/seq_relationship/output_bias",
        "cls/seq_relationship/output_weights",
    }
    # Nor does an evaluation need the head of the other objective.
    heads = ("bert/pooler/", "cls/seq_relationship/")
    kept = {n: x for n, x in two.items() if not n.startswith(heads)}
    tensor_files.write(str(tmp_path / "bert_model.ckpt"), kept)
    out, _ = pretrain(
        tmp_path / "other",
        "--nodo_train",
        *words,
        init_checkpoint=tmp_path / "bert_model.ckpt",
    )
    assert "masked_lm" in out and "next_sentence_" not in out
