"""The plan of a run: the time and memory of each of its phases."""

import types

import tensorflow as tf

from bert.training import memory_estimate
from bert.training.objective import Phase

DEVICES, MB = 2, 10**6
SECONDS = {7: 2.0, 11: 5.0}  # of a step, by the length of its sequences


class Optimizer:
    def __init__(self):
        self.iterations = tf.Variable(0)

    @property
    def step(self):
        return int(self.iterations.numpy())


def test_each_phase_is_timed_without_its_compilation(monkeypatch, capsys):
    clock, called, begun = [0.0], [], []
    optimizer = Optimizer()

    def train(iterator, count):
        length = next(iterator)["ids"].shape[1]
        is_compiled = called.count(length) > 1
        called.append(length)
        clock[0] += SECONDS[length] if is_compiled else 100.0
        return optimizer.iterations.assign_add(count)

    def phase(length, batch_size, last):
        def batches(step):
            begun.append(step)
            ids = tf.zeros([batch_size, length])
            return tf.data.Dataset.from_tensors({"ids": ids}).repeat()

        return Phase(last, batch_size, batches)

    steps = types.SimpleNamespace(
        train=train,
        optimizer=optimizer,
        strategy=types.SimpleNamespace(num_replicas_in_sync=DEVICES),
        model=types.SimpleNamespace(trainable_variables=[tf.zeros([3, 5])]),
    )
    monkeypatch.setattr(memory_estimate.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(memory_estimate, "_memory", lambda: 300 * MB)
    # Two examples more on each device take 40 MB.
    monkeypatch.setattr(
        memory_estimate, "_peak", lambda _, __, n: (60 + 40 * n) * MB
    )
    memory_estimate.report(steps, [phase(7, 4, 90), phase(11, 4, 100)])
    memory = "batch of 4: 100.0 MB of 300.0 MB on each device, 10.0 MB for an "
    memory += "example more; about 24 fit"
    assert capsys.readouterr().out.splitlines() == [
        "15 parameters trained: 0.0 MB of weights, gradients and moments",
        memory,
        "2.000 s a step, 2.0 examples/s: 90 steps take 3 min 00 s",
        memory,
        "5.000 s a step, 0.8 examples/s: 10 steps take 50 s",
        "all steps take 3 min 50 s",
    ]
    assert begun == [0, 90]


def test_the_widest_of_the_first_batches_is_measured(monkeypatch, capsys):
    """Its memory is the largest of all; others would promise too much."""
    lengths, measured = [5, 11, 7, 3], []

    def batches(_):
        return tf.data.Dataset.from_generator(
            lambda: ({"ids": tf.zeros([4, length])} for length in lengths * 9),
            output_signature={"ids": tf.TensorSpec([4, None])},
        )

    def peak(steps, batch, times):
        measured.append(batch["ids"].shape[1])
        return 60 * MB * times

    optimizer = Optimizer()
    steps = types.SimpleNamespace(
        train=lambda iterator, count: optimizer.iterations.assign_add(count),
        optimizer=optimizer,
        strategy=types.SimpleNamespace(num_replicas_in_sync=1),
        model=types.SimpleNamespace(trainable_variables=[]),
    )
    monkeypatch.setattr(memory_estimate, "_peak", peak)
    memory_estimate.report(steps, [Phase(90, 4, batches)])
    assert measured == [11, 11]
    assert "batch of 4: 60.0 MB of" in capsys.readouterr().out


def test_the_peak_is_measured_in_bytes_while_a_larger_batch_runs(
    monkeypatch, tmp_path
):
    status, reset, sizes = tmp_path / "status", tmp_path / "reset", []
    status.write_text("Name:\tpython\nVmHWM:\t    77 kB\n")
    monkeypatch.setattr(memory_estimate, "_RSS_PEAK", str(status))
    monkeypatch.setattr(memory_estimate, "_RESET_PEAK", str(reset))

    def train(iterator, count):
        sizes.append((reset.exists(), len(next(iterator)["ids"])))
        return count

    steps = types.SimpleNamespace(train=train)
    batch = {"ids": tf.zeros([3, 5])}
    assert memory_estimate._peak(steps, batch, 2) == 77 * 1024
    assert sizes == [(False, 6), (True, 6)]  # the first one is compiled
    assert reset.read_text() == "5"
