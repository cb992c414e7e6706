"""Several processes train together as one would; a lost one is named."""

import json
import re
import signal
import threading
import time

import numpy as np
import pytest

import run_classifier
import run_pretraining
from tests.helpers import (
    classifier_files,
    pretraining_runs,
    run_folders,
    small,
    workers,
)
from tests.helpers.pretraining_files import (
    assert_same_bits,
    losses,
    tensors,
    write_records,
)

# Runs the script; keeps the weights that this worker ends with, and the sizes
# of its parts of the batches.
PROGRAM = """
import json, os, sys
import numpy as np
import run_pretraining
from bert.data.records import reader
from bert.runs import signals, start

load, make = start.restore_or_initialize, reader.training_batches
runs, sizes = [], []

def batches(*args):
    made = make(*args)
    sizes.append(made.element_spec["input_ids"].shape[0])
    return made

def remember(run, *rest):
    runs.append(run)
    return load(run, *rest)

def main(argv):
    run_pretraining.main(argv)
    index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
    values = {name: v.numpy() for name, v in runs[0].named.items()}
    np.savez(f"{argv[0]}-{index}.npz", **values, sizes=sizes)

reader.training_batches = batches
start.restore_or_initialize = remember
del sys.argv[0]
sys.exit(signals.run(main))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("workers")
    pretraining_runs.write(folder, num_hidden_layers=1)
    write_records(folder / "bare" / "train.tfrecord", 29, listed=False)
    exact = small.config(num_hidden_layers=1)  # without dropout
    (folder / "exact.json").write_text(exact.to_json())
    return folder


@pytest.fixture(autouse=True)
def own_temporary_folder(monkeypatch, tmp_path):
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    # TensorFlow compiles functions from files there.
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")


def flags_of(folder, output, **changed):
    flags = {
        "bert_config_file": folder / "exact.json",
        "report": False,
        "train_batch_size": 12,
        "eval_batch_size": 6,
        "num_train_steps": 4,
        **changed,
    }
    named = pretraining_runs.flags_of(folder, output, **flags)
    return [f"--{name}={value}" for name, value in named.items()]


def ends(processes):
    """(exit code, stdout, stderr) of each; all must end."""
    outputs = [None] * len(processes)

    def wait(i):
        outputs[i] = processes[i].communicate(timeout=300)

    threads = [
        threading.Thread(target=wait, args=[i]) for i in range(len(processes))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [
        (process.returncode, *output)
        for process, output in zip(processes, outputs, strict=True)
    ]


@pytest.mark.long
@pytest.mark.parametrize("count", [2, 3])
def test_workers_train_as_one_device_does(folder, run_script, tmp_path, count):
    """Two of them on records without a manifest, which TensorFlow reads.

    Each reads its part of the batches, and sums over two micro-batches.
    """
    records = folder / "bare" if count == 2 else folder
    flags = {"input_file": records / "train.tfrecord"}
    words = ["--do_train", "--do_eval", "--eval_steps=3"]
    words += ["--gradient_accumulation_steps=2"]
    words += ["--dynamic_masking"] * (count > 2)
    words += [f"--eval_input_file={folder}/held_out.tfrecord"]
    command = ["-c", PROGRAM, tmp_path / "weights", *words]
    started = workers.start(
        workers.free_ports(count),
        [*command, *flags_of(folder, tmp_path / "together", **flags)],
    )
    code, _, err = run_script(
        run_pretraining,
        *words,
        "--distribution=one_device",
        *flags_of(folder, tmp_path / "alone", **flags),
    )
    assert code == 0, err
    found = ends(started)
    assert [code for code, *_ in found] == [0] * count, found
    alone, together = (
        run_folders.points(tmp_path / name) for name in ("alone", "together")
    )
    assert len(together) == len(alone) == 6
    for ours, theirs in zip(together, alone, strict=True):
        assert ours["step"] == theirs["step"]
        assert ours["loss"] == pytest.approx(theirs["loss"], abs=1e-5)
    weights = [
        dict(np.load(f"{tmp_path}/weights-{i}.npz")) for i in range(count)
    ]
    assert [x.pop("sizes").tolist() for x in weights] == [[12 // count]] * count
    for other in weights[1:]:
        assert_same_bits(weights[0], other)
    saved = tensors(tmp_path / "together" / "model.ckpt-4")
    for name, value in weights[0].items():
        assert value.tobytes() == saved[name].tobytes(), name
    assert "wrote" in found[0][1]
    assert [out for _, out, _ in found[1:]] == [""] * (count - 1)
    assert list((tmp_path / "tmp").iterdir()) == []


# So long that it is hit in the middle; survivors end after some seconds.
LONG = {"num_train_steps": 3000, "save_checkpoints_steps": 20, "log_steps": 10}


@pytest.mark.long
@pytest.mark.parametrize("victim", [0, 1, 2])
@pytest.mark.parametrize(
    ("number", "most"), [(signal.SIGKILL, 5.0), (signal.SIGSTOP, 30.0)]
)
def test_survivors_name_the_worker_that_is_lost(
    folder, tmp_path, number, most, victim
):
    ports = workers.free_ports(3)
    flags = flags_of(folder, tmp_path / "run", **LONG)
    started = workers.start(ports, ["run_pretraining.py", "--do_train", *flags])
    for process in started:
        workers.wait_for_step(process, 20)
    started[victim].send_signal(number)
    start = time.monotonic()
    survivors = [x for i, x in enumerate(started) if i != victim]
    found = ends(survivors)
    seconds = time.monotonic() - start
    started[victim].kill()
    started[victim].communicate()
    for code, out, err in found:
        assert code == 75, err
        assert out == ""
        assert "Traceback" not in err
        errors = [x for x in err.splitlines() if not x.startswith("step ")]
        errors = [x for x in errors if not x.startswith("saved ")]
        assert len(errors) == 1, err
        lost = rf"error: worker {victim} \(127\.0\.0\.1:{ports[victim]}\) lost "
        lost += r"at step \d+; start all workers again with the same command"
        assert re.fullmatch(lost, errors[0]), err
    assert seconds < most
    print(f"{number.name} of worker {victim}: {seconds:.1f} s")


@pytest.mark.long
def test_who_never_starts_is_named(folder, tmp_path):
    ports = workers.free_ports(3)
    flags = flags_of(folder, tmp_path / "run", cluster_timeout=12)
    command = ["run_pretraining.py", "--do_train", *flags]
    found = ends(workers.start(ports, command, only=[0, 2]))
    missing = f"worker 1 (127.0.0.1:{ports[1]})"
    for code, out, err in found:
        assert code == 75, err
        assert out == ""
        lines = err.splitlines()
        assert f"waiting for {missing}" in lines
        assert lines[-1] == (
            f"error: {missing} did not start within 12 s (--cluster_timeout)"
        )


@pytest.mark.long
def test_a_lost_worker_changes_no_bit(folder, tmp_path):
    """Killed in training; the same command on both, again."""
    ports = workers.free_ports(2)
    plan = LONG | {"num_train_steps": 600}
    plan["bert_config_file"] = folder / "config.json"
    for name in ("straight", "killed"):
        flags = flags_of(folder, tmp_path / name, **plan)
        command = ["run_pretraining.py", "--do_train", *flags]
        if name == "killed":
            for victim, step in ((1, 60), (0, 240)):
                started = workers.start(ports, command)
                workers.wait_for_step(started[victim], step)
                started[victim].kill()
                assert sorted(x for x, *_ in ends(started)) == [-9, 75]
        found = ends(workers.start(ports, command))
        assert [code for code, *_ in found] == [0, 0], found
    straight, killed = (
        tensors(tmp_path / name / "model.ckpt-600")
        for name in ("straight", "killed")
    )
    assert_same_bits(killed, straight)
    assert losses(tmp_path / "killed") == losses(tmp_path / "straight")


@pytest.mark.long
@pytest.mark.parametrize("asked", [0, 1])
def test_one_that_is_asked_to_stop_stops_all(folder, tmp_path, asked):
    ports = workers.free_ports(2)
    flags = flags_of(folder, tmp_path / "run", **LONG)
    started = workers.start(ports, ["run_pretraining.py", "--do_train", *flags])
    workers.wait_for_step(started[asked], 20)
    started[asked].terminate()
    found = ends(started)
    for code, _, err in found:
        assert code == 75, err
        assert (
            "SIGTERM; the same command resumes the run" in err.splitlines()[-1]
        )
    (step,) = {re.search(r"at step (\d+) of", err)[1] for *_, err in found}
    assert (tmp_path / "run" / f"model.ckpt-{step}.json").exists()


# Sends itself SIGTERM after a step.
STOPPED = """
import os, signal, sys
import run_pretraining
from bert.runs import signals
from bert.training import logs

log = logs.log_training

def log_and_stop(step, *rest):
    log(step, *rest)
    if step == int(sys.argv[0]):
        os.kill(os.getpid(), signal.SIGTERM)

logs.log_training = log_and_stop
del sys.argv[0]
sys.exit(signals.run(run_pretraining.main))
"""


@pytest.mark.long
def test_a_run_goes_on_with_another_number_of_workers(folder, tmp_path):
    """One until step 5, two until step 9, and four to the end."""
    parts = {"elastic": [(1, 5, 75), (2, 9, 75), (4, 0, 0)]}
    parts["straight"] = [(1, 0, 0)]
    plan = {"num_train_steps": 13, "learning_rate": 1e-3}
    words = ["--do_train", "--dynamic_masking"]
    for name, counts in parts.items():
        flags = [*words, *flags_of(folder, tmp_path / name, **plan)]
        for count, stop, code in counts:
            ports = workers.free_ports(count)
            found = ends(workers.start(ports, ["-c", STOPPED, stop, *flags]))
            assert [x for x, *_ in found] == [code] * count, found
    elastic, straight = (
        [float.fromhex(x) for x in losses(tmp_path / name)] for name in parts
    )
    assert len(straight) == 13
    np.testing.assert_allclose(elastic, straight, rtol=0, atol=1e-6)
    ours, theirs = (
        tensors(tmp_path / name / "model.ckpt-13") for name in parts
    )
    for name, value in theirs.items():
        np.testing.assert_allclose(
            ours[name], value, rtol=0, atol=1e-6, err_msg=name
        )


@pytest.fixture
def classify(tmp_path, run_script):
    """Flags of a short fine-tuning, and a function that runs them here."""
    classifier_files.write_model(tmp_path)
    classifier_files.write_task(tmp_path)
    named = classifier_files.flags_of(tmp_path)
    named |= {"train_batch_size": 8, "num_train_epochs": 1, "log_steps": 1}
    flags = [f"--{name}={value}" for name, value in named.items()]

    def run(output, *words):
        code, _, err = run_script(
            run_classifier, *flags, *words, f"--output_dir={output}"
        )
        assert code == 0, err
        return answers(output)

    return flags, run


def answers(output):
    rows = classifier_files.rows_of(output / "test_results.tsv")
    assert len(rows) == classifier_files.TEST
    return np.array(rows, np.float64)


@pytest.mark.long
def test_workers_fine_tune_and_predict_together(classify, tmp_path):
    """One process gives the same answers with the weights they leave."""
    flags, run = classify
    output = tmp_path / "run"
    words = ["--do_train", "--do_eval", "--do_predict", "--eval_steps=3"]
    words = [*flags, *words, f"--output_dir={output}"]
    ports = workers.free_ports(2)
    found = ends(workers.start(ports, ["run_classifier.py", *words]))
    assert [code for code, *_ in found] == [0, 0], found
    assert "eval_accuracy" in found[0][1]
    assert found[1][1] == ""
    assert (output / "best" / "checkpoint").exists()
    theirs = answers(output)
    ours = run(output, "--do_predict", "--eval_steps=3")
    np.testing.assert_allclose(theirs, ours, atol=1e-5)


def test_only_training_is_shared(folder, run_script, monkeypatch, tmp_path):
    config = {
        "cluster": {"worker": ["a:1", "b:1"]},
        "task": {"type": "worker", "index": 0},
    }
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    code, _, err = run_script(
        run_pretraining, "--do_eval", *flags_of(folder, tmp_path / "run")
    )
    assert code == 2
    assert err == (
        "error: a cluster of 2 processes; expected one: only training is "
        "distributed; pass --do_train, or --distribution=one_device\n"
    )
