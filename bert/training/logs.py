"""Logs of a run: mean metrics, speed, TensorBoard, `metrics.jsonl`."""

import collections
import json
import os
import statistics
import time

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from bert.common import atomic, storage
from bert.common.formats import json_files
from bert.common.progress import draw, duration, log, quantity
from bert.training.objective import Phase
from bert.training.train_step import TOKENS, TrainStep

METRICS = "metrics.jsonl"
_SECONDS_A_CALL = 2.0
_SECONDS_BETWEEN_LINES = 10.0
_CALLS = 99  # number of calls whose time is averaged
_SLOW = 8  # times the median: the call compiled, or the machine was suspended


class TrainingLog:
    """Training log; as a context manager it ends the profile.

    It adds up the sums of steps, writes their means, and measures the speed
    without pauses for checkpoints and evaluation.

    Args:
        folder: str. The run's output_dir. It gets the training curves, and
            its subfolder `eval` gets the evaluation curves.
        train_step: TrainStep. Computes the sums.
        iterations_per_loop: int. Maximum number of steps in one call.
        profiled: tuple of two ints, or None. First and last step (from 1) of
            a profile for TensorBoard. Default: None, no profile.
    """

    def __init__(
        self,
        folder: str,
        train_step: TrainStep,
        iterations_per_loop: int,
        profiled: tuple[int, int] | None = None,
    ):
        self._folders = {"train": folder, "eval": os.path.join(folder, "eval")}
        self._path = os.path.join(folder, METRICS)
        self._writers = {}

        self._train_step = train_step
        self._iterations_per_loop = iterations_per_loop
        self._first, self._last = profiled or (0, 0)
        self._is_profiling = False
        self._clear()
        self.begin_phase()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._end_profile()

    def _end_profile(self) -> None:
        if self._is_profiling:
            self._is_profiling = False
            tf.profiler.experimental.stop()
            folder = self._folders["train"]
            log(f"profiled {folder}: tensorboard --logdir shows it")

    def drop_after(self, step: int) -> None:
        """Drops later log entries, after a run was killed or went back."""
        for curves in self._folders.values():
            _drop_events_after(curves, step)
        if not storage.exists(self._path):
            return

        with storage.open_text(self._path) as file:
            lines = [line for line in file if line.endswith("\n")]
        kept = [line for line in lines if json.loads(line)["step"] <= step]
        atomic.write_whole(self._path, "".join(kept))

    def begin_phase(self) -> None:
        """Resets the measured speed: each phase has its own program.

        The first call traces and compiles, so it has one step and its time is
        not counted. Later calls that compile for another length are not
        counted either.
        """
        # Seconds and number of steps of the last calls.
        self._calls = collections.deque(maxlen=_CALLS)
        self._has_compiled = False
        self._logged = float("-inf")
        self.resume()

    def resume(self) -> None:
        """Restarts the clock after a pause."""
        self._start = time.monotonic()

    def steps_per_call(self, step: int, limit: int) -> int:
        """Number of steps for a call of about 2 s, at most `limit`.

        A profiled call has one step. The profile starts and ends here.

        Args:
            step: int. Number of the last step before the call.
            limit: int. Maximum number of steps.
        """
        if self._is_profiling and step >= self._last:
            self._end_profile()
        if self._first <= step + 1 <= self._last:
            if not self._is_profiling:
                tf.profiler.experimental.start(self._folders["train"])
                self._is_profiling = True
            return 1

        # The call before the profile ends where it starts.
        if step < self._first:
            limit = min(limit, self._first - 1 - step)
        if not self._calls:
            return 1
        fit = int(_SECONDS_A_CALL / self.seconds_per_step)
        return max(1, min(limit, fit, self._iterations_per_loop))

    def count_call(self, steps: int) -> None:
        """Records a finished call with this number of steps."""
        now = time.monotonic()
        if self._has_compiled:
            self._calls.append((now - self._start, steps))
        self._has_compiled = True
        self._start = now

    @property
    def seconds_per_step(self) -> float:
        """Mean of the last calls that did not compile; 0 if unknown."""
        if not self._calls:
            return 0.0

        # Calls that compiled, or were suspended, do not show the speed.
        most = _SLOW * statistics.median_low(
            x / steps for x, steps in self._calls
        )
        counted = [x for x in self._calls if x[0] <= most * x[1]]
        return sum(x for x, _ in counted) / sum(steps for _, steps in counted)

    def add(self, sums: NDArray) -> None:
        """Adds the sums of `TrainStep.train`, float32 [steps, ...]."""
        # One by one, so that bits do not depend on the steps in a call.
        for row in sums:
            self._sums += row
        self._count += len(sums)

    def report(
        self, step: int, phase: Phase, learning_rate: float, is_stop: bool
    ) -> None:
        """Logs the means since the last stop; also every few seconds.

        Args:
            step: int. The last step that was taken.
            phase: Phase. Phase of the step.
            learning_rate: float. Learning rate of the step.
            is_stop: bool. Whether the means are written and then reset.
        """
        seconds = self.seconds_per_step
        left = seconds * (phase.end_step - step)
        show_progress(step, phase.end_step, seconds, left)
        is_late = self._start - self._logged >= _SECONDS_BETWEEN_LINES
        if not self._count or not (is_stop or is_late):
            return

        tokens = (
            self._sums[self._train_step.sum_names.index(TOKENS)] / self._count
        )
        rate = 1.0 / seconds if seconds else 0.0
        values = means(self._train_step, self._sums, self._count) | {
            "learning_rate": learning_rate,
            "examples_per_second": rate * phase.batch_size,
            "tokens_per_second": rate * float(tokens),
        }

        losses = self._train_step.objective.names
        log_training(step, phase.end_step, values, losses, left)
        self._logged = time.monotonic()
        if is_stop:
            self.write(step, "train", values)
            self._clear()

    def write(self, step: int, kind: str, values: dict[str, float]) -> None:
        """Writes the metrics of one step.

        Args:
            step: int. Global step.
            kind: str. "train" or "eval".
            values: dict. Metric -> value. In `metrics.jsonl` non-finite values
                are null.
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

    def state_dict(self) -> dict:
        """JSON values for `load_state_dict`."""
        sums = [x.hex() for x in self._sums[:-1].tolist()]
        return {"steps": self._count, "sums": sums}

    def load_state_dict(self, state: dict) -> None:
        """Restores the sums of an interrupted run with equal losses."""
        if len(state["sums"]) == len(self._sums) - 1:
            self._count = state["steps"]
            self._sums[:-1] = [float.fromhex(x) for x in state["sums"]]

    def _clear(self) -> None:
        # Two more than the named sums: gradient norm and loss scale.
        self._sums = np.zeros(len(self._train_step.sum_names) + 2)
        self._count = 0


def means(train_step: TrainStep, sums: NDArray, count: int) -> dict[str, float]:
    """Total loss, each loss with its accuracy, and gradient norm.

    Args:
        train_step: TrainStep. Names the sums and the losses.
        sums: float [...]. Row of `TrainStep.train`, added up over steps.
        count: int. Number of steps.
    """
    named = dict(zip(train_step.sum_names, sums.tolist()))
    values = {"loss": 0.0}
    for loss in train_step.objective.names:
        weight = named[f"{loss}_weight"]
        for what in ("loss", "accuracy"):
            name = f"{loss}_{what}"
            if name in named:
                values[name] = named[name] / weight if weight else 0.0
        values["loss"] += values[f"{loss}_loss"]

    values["gradient_norm"] = float(sums[-2]) / max(1, count)
    return values


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


def log_training(
    step: int,
    last_step: int,
    values: dict[str, float],
    losses: tuple[str, ...],
    seconds_left: float,
) -> None:
    """Logs one line of training metrics."""
    rate = values["examples_per_second"]
    speed = (
        f"{quantity(rate)} examples/s | "
        f"{quantity(values['tokens_per_second'])} tokens/s | "
        f"{duration(seconds_left)} left"
    )

    log(
        f"step {step}/{last_step} | {_losses(values, losses)} | "
        f"lr {values['learning_rate']:.3g} | "
        f"grad norm {values['gradient_norm']:.3g} | "
        f"{speed if rate else 'compiled'}"
    )


def show_progress(
    step: int, last_step: int, seconds_per_step: float, seconds_left: float
) -> None:
    """Draws the progress bar of training on a terminal."""
    text = f"step {step} of {last_step}"
    if seconds_per_step:
        speed = quantity(1 / seconds_per_step)
        text += f", {speed} steps/s, {duration(seconds_left)} left"
    draw("training", step / last_step, text)


def log_evaluation(
    step: int, values: dict[str, float], losses: tuple[str, ...]
) -> None:
    """Logs one line of evaluation metrics."""
    shown = " | ".join(f"{name} {x:.4f}" for name, x in values.items())
    if all(f"{loss}_loss" in values for loss in losses):
        shown = _losses(values, losses)
    log(f"step {step} held out | {shown}")


def _losses(values: dict[str, float], losses: tuple[str, ...]) -> str:
    parts = []
    for loss in losses:
        parts.append(f"{loss} {values[f'{loss}_loss']:.4f}")
        if f"{loss}_accuracy" in values:
            parts[-1] += f" (accuracy {values[f'{loss}_accuracy']:.4f})"
    return f"loss {values['loss']:.4f} = {' + '.join(parts)}"
