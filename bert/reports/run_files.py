"""Files in the folder of a run; all are optional for a report.

metrics.jsonl         curves of training and evaluation
model.ckpt-N.json     settings and environment
bert_config.json      sizes of the network
eval_results.txt      metrics of the last evaluation
eval_report.json      baselines, confusion matrix, errors
command.txt           command lines
"""

import dataclasses
import math
import os
import re
from typing import TypeGuard

from bert.common import flags, storage
from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.common.formats.curves import read_curves

CURVES = "metrics.jsonl"
_PREFIX = "model.ckpt-"


@dataclasses.dataclass(frozen=True)
class RunFiles:
    """Contents of the files of a run.

    Attributes:
        folder: str. Folder as given.
        name: str. Name of the folder.
        train, held_out: list of dict. Points of the curves, ascending by step.
        step: int or None. Step of the newest checkpoint or point.
        settings: dict. Flag -> value.
        environment: dict. Versions and devices.
        config: dict. Sizes of the network.
        results: dict. Metric -> value, from `eval_results.txt`.
        evaluation: dict. Contents of `eval_report.json`.
        commands: list of str. Command lines.
    """

    folder: str
    name: str
    train: list[dict]
    held_out: list[dict]
    step: int | None
    settings: dict
    environment: dict
    config: dict
    results: dict[str, float]
    evaluation: dict
    commands: list[str]


def read_run(folder: str) -> RunFiles:
    """Reads the folder of a run.

    Args:
        folder: str. Output folder of the run.

    Raises:
        UserError: the folder is missing or not a run, or a file is damaged.
    """
    if not storage.is_folder(folder):
        raise UserError("no such folder", path=folder, expected="a run")

    path = os.path.join(folder, CURVES)
    points = _last_of_each(read_curves(path)) if storage.exists(path) else []
    results = _results(os.path.join(folder, "eval_results.txt"))
    evaluation = _json(os.path.join(folder, "eval_report.json"))
    if not points and not results and not evaluation:
        raise UserError(
            f"no {CURVES} and no results of an evaluation",
            path=folder,
            expected="the output_dir of a run",
        )

    # The curves may be ahead of the newest checkpoint.
    step, description = _description(folder)
    steps = [point["step"] for point in points]
    if step is not None:
        steps.append(step)

    settings = flags.from_json(description.get("settings", {}))
    environment = settings.pop("environment", {})
    return RunFiles(
        folder,
        os.path.basename(storage.absolute(folder)),
        [point for point in points if point.get("kind") == "train"],
        [point for point in points if point.get("kind") == "eval"],
        max(steps, default=None),
        settings,
        environment,
        _json(os.path.join(folder, "bert_config.json")),
        results,
        evaluation,
        _lines(os.path.join(folder, "command.txt")),
    )


def _last_of_each(points: list[dict]) -> list[dict]:
    """Drops points that a resumed run has written again."""
    # The file is in order of time, so the last point of a step is kept.
    kept = {(point["step"], point.get("kind")): point for point in points}
    return sorted(kept.values(), key=lambda point: point["step"])


def _description(folder: str) -> tuple[int | None, dict]:
    """Step and description of the newest checkpoint."""
    paths = {}
    for path in storage.find(folder, f"{_PREFIX}*.json"):
        match = re.fullmatch(r"(\d+)\.json", path.rpartition(_PREFIX)[2])
        if match:
            paths[int(match[1])] = path

    step = max(paths, default=None)
    return step, {} if step is None else _json(paths[step])


def _json(path: str) -> dict:
    """Object in a JSON file; {} if the file is missing."""
    return json_files.read(path, has_nan=True) if storage.exists(path) else {}


def _results(path: str) -> dict[str, float]:
    """Parses lines of `name = value`."""
    results = {}
    for number, line in enumerate(_lines(path), start=1):
        name, _, value = line.partition(" = ")
        try:
            results[name] = float(value)
        except ValueError:
            raise UserError(
                f"{line[:50]!r}",
                path=path,
                line=number,
                expected="name = number",
            ) from None
    return results


def _lines(path: str) -> list[str]:
    """Lines of a file; [] if the file is missing or empty."""
    try:
        with storage.open_text(path) as file:
            text = file.read().removesuffix("\n")
            return text.split("\n") if text else []
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot be read: {error}", path=path) from None


def is_number(value: object) -> TypeGuard[float]:
    """Whether a JSON value is a finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)
