"""Logs of a run: lines on stderr, TensorBoard, `metrics.jsonl`."""

import json
import os

import tensorflow as tf

from common import storage
from common.progress import draw, duration, quantity, say

METRICS = "metrics.jsonl"


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
        line = {"step": step, "kind": kind, **values}
        with storage.open_text(self._path, "a") as file:
            file.write(storage.to_json(line) + "\n")
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
        storage.write_whole(self._path, "".join(kept))


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
            storage.whole_file(path) as temporary,
            tf.io.TFRecordWriter(temporary) as writer,
        ):
            for record in kept:
                writer.write(record)


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
    say(f"step {step} held out | {_losses(values, objectives)}")


def _losses(values: dict[str, float], objectives: tuple[str, ...]) -> str:
    parts = []
    for objective in objectives:
        parts.append(f"{objective} {values[f'{objective}_loss']:.4f}")
        if f"{objective}_accuracy" in values:
            parts[-1] += f" (accuracy {values[f'{objective}_accuracy']:.4f})"
    return f"loss {values['loss']:.4f} = {' + '.join(parts)}"
