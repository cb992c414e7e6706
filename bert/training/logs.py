"""Logs of a run: means, throughput, lines, TensorBoard, `metrics.jsonl`."""

import collections
import json
import os
import statistics
import time

import tensorflow as tf

from bert.common import atomic, storage
from bert.common.formats import json_files
from bert.common.progress import draw, duration, quantity, say

METRICS = "metrics.jsonl"
_SECONDS_A_CALL = 2.0
_SECONDS_BETWEEN_LINES = 10.0
_CALLS = 99  # that are averaged
_SLOW = 8  # times the median: a call that compiled, or the machine was asleep


class TrainingLog:
    """Writes the metrics of a run.

    Args:
        folder: the run's output_dir; holds the training curves, and the
            evaluation curves in `eval`.
        step: where the run starts; earlier logs of later steps, by a run
            that was killed or that went back, are dropped.
    """

    def __init__(self, folder: str, step: int):
        self._path = os.path.join(folder, METRICS)
        self._folders = {"train": folder, "eval": os.path.join(folder, "eval")}
        self._writers = {}

        self._drop_after(step)
        for curves in self._folders.values():
            _drop_events_after(curves, step)

    def write(self, step: int, kind: str, values: dict[str, float]) -> None:
        """Writes the metrics of one step.

        Args:
            step: global step.
            kind: "train" or "eval".
            values: metric -> value; `metrics.jsonl` has null for values that
                are not finite.
        """
        # Lines for the report and for scripts, then TensorBoard's curves.
        line = {"step": step, "kind": kind, **values}
        with storage.open_text(self._path, "a") as file:
            file.write(json_files.to_json(line) + "\n")

        if kind not in self._writers:
            self._writers[kind] = tf.summary.create_file_writer(
                self._folders[kind]
            )

        with self._writers[kind].as_default(step=step):
            for name, value in values.items():
                tf.summary.scalar(name, value)
        self._writers[kind].flush()

    def _drop_after(self, step: int) -> None:
        if not storage.exists(self._path):
            return
        with storage.open_text(self._path) as file:
            lines = [line for line in file if line.endswith("\n")]

        kept = [line for line in lines if json.loads(line)["step"] <= step]
        atomic.write_whole(self._path, "".join(kept))


def _drop_events_after(folder: str, step: int) -> None:
    """Removes later steps from TensorBoard's event files.

    Otherwise it would show two branches of a run as one curve.
    """
    for path in storage.find(folder, "events.out.tfevents.*"):
        records, kept = [], []
        try:
            for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
                records.append(record)
                if tf.compat.v1.Event.FromString(record).step <= step:
                    kept.append(record)
        except tf.errors.DataLossError:
            pass  # a run was killed while it wrote the last one
        if len(kept) == len(records):
            continue

        with (
            atomic.whole_file(path) as temporary,
            tf.io.TFRecordWriter(temporary) as writer,
        ):
            for record in kept:
                writer.write(record)


class RunningSums:
    """Sums over steps, and their means.

    Args:
        names: names of the sums of a step.

    Attributes:
        steps: number of steps added.
    """

    def __init__(self, names: tuple[str, ...]):
        self._names = names
        self.steps = 0
        self._sums = [0.0] * (len(names) + 1)

    def add(self, sums) -> None:
        """Adds the sums of `Steps.train`, float32 [steps, ...]."""
        for row in sums.tolist():
            self._sums = [a + b for a, b in zip(self._sums, row)]
        self.steps += len(sums)

    def means(self, objectives: tuple[str, ...]) -> dict[str, float]:
        """`loss`, loss and accuracy of each objective, `gradient_norm`."""
        sums = dict(zip(self._names, self._sums))
        values = {"loss": 0.0}
        for objective in objectives:
            weight = sums[f"{objective}_weight"]
            for what in ("loss", "accuracy"):
                name = f"{objective}_{what}"
                if name in sums:
                    values[name] = sums[name] / weight if weight else 0.0
            values["loss"] += values[f"{objective}_loss"]

        values["gradient_norm"] = self._sums[-1] / max(1, self.steps)
        return values

    def mean(self, name: str) -> float:
        """Mean of a sum over the steps."""
        return dict(zip(self._names, self._sums))[name] / self.steps

    def state_dict(self) -> dict:
        """JSON values for `load_state_dict`."""
        return {"steps": self.steps, "sums": [x.hex() for x in self._sums]}

    def load_state_dict(self, state: dict) -> None:
        """Restores the sums of an interrupted run with the same objectives."""
        if len(state["sums"]) == len(self._sums):
            self.steps = state["steps"]
            self._sums = [float.fromhex(x) for x in state["sums"]]


class Throughput:
    """Measures throughput, without pauses for checkpoints and evaluation.

    The first call traces and compiles, so it has one step and its time is
    not counted; nor is that of later calls that compile for another length.

    Args:
        iterations_per_loop: maximum number of steps in one call.
    """

    def __init__(self, iterations_per_loop: int):
        self._iterations_per_loop = iterations_per_loop
        # Seconds and steps of the last calls.
        self._last = collections.deque(maxlen=_CALLS)
        self._calls = 0
        self._start = time.monotonic()
        self._logged = float("-inf")

    def steps_per_call(self, limit: int) -> int:
        """Number of steps for a call of about 2 s, at most `limit`."""
        if not self._last:
            return 1
        fit = int(_SECONDS_A_CALL / self.seconds_per_step)
        return max(1, min(limit, fit, self._iterations_per_loop))

    def count_call(self, steps: int) -> None:
        """Counts a call that has ended, of this number of steps."""
        now = time.monotonic()
        if self._calls:
            self._last.append((now - self._start, steps))
        self._calls += 1
        self._start = now

    def resume(self) -> None:
        """Restarts the clock after a pause."""
        self._start = time.monotonic()

    def is_log_due(self) -> bool:
        """Whether no line was logged in the last 10 s."""
        return self._start - self._logged >= _SECONDS_BETWEEN_LINES

    def mark_logged(self) -> None:
        """Notes that a line was logged."""
        self._logged = time.monotonic()

    @property
    def seconds_per_step(self) -> float:
        """Mean of the last calls that did not compile; 0 while unknown."""
        if not self._last:
            return 0.0

        # A call that compiled, or slept through a suspension, tells nothing.
        most = _SLOW * statistics.median_low(
            x / steps for x, steps in self._last
        )
        counted = [x for x in self._last if x[0] <= most * x[1]]
        return sum(x for x, _ in counted) / sum(steps for _, steps in counted)


class Profile:
    """Profiles some steps for TensorBoard; as a context manager it ends.

    Args:
        folder: the run's output_dir; receives `plugins/profile`.
        steps: the first and the last step, from 1; None: nothing is profiled.
    """

    def __init__(self, folder: str = "", steps: tuple[int, int] | None = None):
        self._folder = folder
        self._first, self._last = steps or (0, 0)
        self._is_on = False

    def steps_per_call(self, step: int, limit: int) -> int:
        """Starts or ends after a step; returns the limit of the next call.

        A call has one step of the profile, else at most `limit`.
        """
        if self._is_on and step >= self._last:
            self.__exit__()

        if self._first <= step + 1 <= self._last:
            if not self._is_on:
                tf.profiler.experimental.start(self._folder)
                self._is_on = True
            return 1

        # The call before the profile ends where it starts.
        return (
            min(limit, self._first - 1 - step) if step < self._first else limit
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self._is_on:
            self._is_on = False
            tf.profiler.experimental.stop()
            say(f"profiled {self._folder}: tensorboard --logdir shows it")


def log_training(
    step: int,
    last_step: int,
    values: dict[str, float],
    objectives: tuple[str, ...],
    seconds_left: float,
) -> None:
    """Logs one line of training metrics."""
    rate = values["examples_per_second"]
    speed = (
        f"{quantity(rate)} examples/s | "
        f"{quantity(values['tokens_per_second'])} tokens/s | "
        f"{duration(seconds_left)} left"
    )

    say(
        f"step {step}/{last_step} | {_losses(values, objectives)} | "
        f"lr {values['learning_rate']:.3g} | "
        f"grad norm {values['gradient_norm']:.3g} | "
        f"{speed if rate else 'compiled'}"
    )


def show_progress(step: int, last_step: int, seconds_per_step: float) -> None:
    """Draws the bar of the steps, on a terminal."""
    text = f"step {step} of {last_step}"
    if seconds_per_step:
        left = duration(seconds_per_step * (last_step - step))
        text += f", {quantity(1 / seconds_per_step)} steps/s, {left} left"
    draw("training", step / last_step, text)


def log_evaluation(
    step: int, values: dict[str, float], objectives: tuple[str, ...]
) -> None:
    """Logs one line of evaluation metrics."""
    shown = " | ".join(f"{name} {x:.4f}" for name, x in values.items())
    if all(f"{objective}_loss" in values for objective in objectives):
        shown = _losses(values, objectives)
    say(f"step {step} held out | {shown}")


def _losses(values: dict[str, float], objectives: tuple[str, ...]) -> str:
    parts = []
    for objective in objectives:
        parts.append(f"{objective} {values[f'{objective}_loss']:.4f}")
        if f"{objective}_accuracy" in values:
            parts[-1] += f" (accuracy {values[f'{objective}_accuracy']:.4f})"
    return f"loss {values['loss']:.4f} = {' + '.join(parts)}"
