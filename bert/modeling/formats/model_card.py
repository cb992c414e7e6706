"""README.md of a model, with the metadata that Hugging Face reads.

    ---
    pipeline_tag: "text-classification"
    ---

The metadata is YAML. Each value is written as JSON, which is YAML too, so that
no name of a file or a label ends its string.
"""

import dataclasses
import json
import os
import re
from collections.abc import Collection

import msgspec

from bert.common import atomic, storage
from bert.common.errors import printable
from bert.common.flags import OUTPUT, flag
from bert.common.formats import json_files

README, REPORT = "README.md", "eval_report.json"
_BASE = re.compile(r"hf://([^@]+)")
_TASKS = {  # a variable of the head -> name of the task at Hugging Face
    "output_weights": "text-classification",
    "cls/ner/output_weights": "token-classification",
    "cls/squad/output_weights": "question-answering",
    "cls/swag/output_weights": "multiple-choice",
    "cls/predictions/output_bias": "fill-mask",
}
_METRICS = {
    "matthews": "matthews_correlation",
    "pearson": "pearsonr",
    "spearman": "spearmanr",
}
# YAML takes them for ends of lines, or rejects them.
_ESCAPED = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")


@dataclasses.dataclass(frozen=True)
class CardFlags:
    """What the README.md of a model tells, and no file of the run knows."""

    topic = OUTPUT

    card_license: str | None = flag(
        None, "Licence of the model for its README.md, such as apache-2.0."
    )
    card_language: tuple[str, ...] | None = flag(
        None, "Languages of the model for its README.md, such as en,de."
    )


class Scores(msgspec.Struct):
    """The part of an `eval_report.json` that a README.md has.

    Attributes:
        task: its name, such as sst2.
        records: path of the evaluated file.
        metrics: metric -> value; None: not a number.
        step: of the weights.
        rows: the part of the file that was evaluated; "": all of it.
    """

    task: str
    records: str
    metrics: dict[str, float | None]
    step: int
    rows: str = ""

    @property
    def source(self) -> str:
        """Name of the evaluated file, and the part of it."""
        file = os.path.basename(self.records)
        return f"{file}, {self.rows}" if self.rows else file


def read_scores(folder: str, step: int) -> Scores | None:
    """Reads the scores of a run.

    Args:
        folder: of the run.
        step: of the weights.

    Returns:
        the scores; None if there are none, or they are of another step.

    Raises:
        UserError: the file is damaged.
    """
    path = os.path.join(folder, REPORT)
    if not storage.is_file(path):
        return None
    scores = json_files.read(path, Scores, has_nan=True)
    return scores if scores.step == step else None


def task_of(variables: Collection[str], has_vectors: bool) -> str:
    """Name of a task at Hugging Face.

    Args:
        variables: names of the model's.
        has_vectors: whether it gives one vector of a text.
    """
    if has_vectors:
        return "sentence-similarity"
    tasks = (task for name, task in _TASKS.items() if name in variables)
    return next(tasks, "feature-extraction")


def write(
    folder: str,
    name: str,
    library: str,
    task: str,
    told: CardFlags,
    base: str | None,
    scores: Scores | None,
) -> None:
    """Writes a README.md.

    Args:
        folder: of the model.
        name: of the model.
        library: that loads it.
        task: from `task_of`.
        told: flags.
        base: the --init_checkpoint; only names of Hugging Face are written.
        scores: from an evaluation, or None.
    """
    published = _BASE.match(base or "")
    rows = _rows(scores) if scores else {}
    values = {
        "base_model": published and published[1],
        "library_name": library,
        "pipeline_tag": task,
        "language": told.card_language,
        "license": told.card_license,
        "tags": ["bert"],
        "model-index": rows and [_result(name, task, scores, rows)],
    }
    lines = [f"{key}: {_yaml(x)}" for key, x in values.items() if x]
    text = ["---", *lines, "---", "", f"# {_code(name)}"]
    if rows:
        text += [
            "",
            f"Measured on {_code(scores.source)}:",
            "",
            "| metric | value |",
        ]
        text += [
            "|---|---|",
            *(f"| {_code(k)} | {x} |" for k, x in rows.items()),
        ]
    atomic.write_whole(os.path.join(folder, README), "\n".join([*text, ""]))


def _rows(scores: Scores) -> dict[str, float]:
    """Metrics by their names at Hugging Face, to four digits."""
    rows = {}
    for key, value in scores.metrics.items():
        key = key.removeprefix("eval_")
        if value is not None and abs(value) < float("inf"):
            rows[_METRICS.get(key, key)] = round(value, 4)
    return rows


def _result(name: str, task: str, scores: Scores, rows: dict) -> dict:
    """An entry of `model-index`."""
    return {
        "name": name,
        "results": [
            {
                "task": {"type": task},
                "dataset": {"type": scores.task, "name": scores.source},
                "metrics": [{"type": k, "value": x} for k, x in rows.items()],
            }
        ],
    }


def _yaml(value) -> str:
    text = json.dumps(value, ensure_ascii=False)
    text = text.encode("utf-8", "replace").decode()
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _code(text: str) -> str:
    return f"`{printable(text).replace('`', '')}`"
