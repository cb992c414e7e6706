"""README.md of a model, with the metadata that Hugging Face reads.

    ---
    pipeline_tag: "text-classification"
    ---

The metadata is YAML. Each value is written as JSON, which is valid YAML, so
that special characters in file names and labels are escaped.
"""

import dataclasses
import json
import os
import re
from collections.abc import Collection

import msgspec

from bert.common import atomic, storage
from bert.common.errors import printable
from bert.common.flags import OUTPUT, BaseSettings, flag
from bert.common.formats import downloads, json_files
from bert.modeling.task_heads import HEADS, heads_of

README, REPORT = "README.md", "eval_report.json"
_METRICS = {
    "matthews": "matthews_correlation",
    "pearson": "pearsonr",
    "spearman": "spearmanr",
}
_MACHINE = (
    "The scores are those of the machine that wrote this model. Another "
    "processor can give slightly different scores, most of all in int8."
)
# Characters that YAML rejects, or reads as line ends.
_ESCAPED = re.compile("[\x7f-\xa0\u2028\u2029\ufeff\ufffe\uffff]")


@dataclasses.dataclass(frozen=True)
class CardFlags(BaseSettings):
    """Model-card fields that only the user can provide."""

    topic = OUTPUT

    card_license: str | None = flag(
        None, "Licence of the model for its README.md, such as apache-2.0."
    )
    card_language: tuple[str, ...] | None = flag(
        None, "Languages of the model for its README.md, such as en,de."
    )


class Scores(msgspec.Struct):
    """Part of an `eval_report.json` that is written to the README.md.

    Attributes:
        task: str. Name of the task, such as sst2.
        records: str. Path of the evaluated file.
        metrics: dict. Metric -> value; None if it is not a number.
        step: int. Training step of the weights.
        rows: str. Evaluated part of the file; "" for the whole file.
    """

    task: str
    records: str
    metrics: dict[str, float | None]
    step: int
    rows: str = ""

    @property
    def source(self) -> str:
        """Name and part of the evaluated file."""
        file = os.path.basename(self.records)
        return f"{file}, {self.rows}" if self.rows else file


def read_scores(folder: str, step: int) -> Scores | None:
    """Reads the scores of a run.

    Args:
        folder: str. Folder of the run.
        step: int. Training step of the weights.

    Returns:
        Scores; or None if the run has not evaluated this step.

    Raises:
        UserError: the file is damaged.
    """
    path = os.path.join(folder, REPORT)
    if not storage.is_file(path):
        return None
    scores = json_files.read(path, Scores, has_nan=True)
    return scores if scores.step == step else None


def task_of(variables: Collection[str], computes_embeddings: bool) -> str:
    """Name of a model's task at Hugging Face.

    Args:
        variables: collection of str. Names of the model's variables.
        computes_embeddings: bool. Whether the model embeds texts.
    """
    if computes_embeddings:
        return "sentence-similarity"
    tags = [HEADS[name].pipeline_tag for name in heads_of(variables)]
    # A head of pre-training comes before that of a task.
    return next(filter(None, reversed(tags)), "feature-extraction")


def write(
    folder: str,
    name: str,
    library: str,
    task: str,
    card_flags: CardFlags,
    base: str | None,
    scores: Scores | None,
) -> None:
    """Writes a README.md.

    Args:
        folder: str. Folder of the model.
        name: str. Name of the model.
        library: str. Library that loads the model.
        task: str. Result of `task_of`.
        card_flags: CardFlags. Language and licence.
        base: str or None. The --init_checkpoint, as given or as recorded;
            only written if it is a Hugging Face name.
        scores: Scores or None. Scores of an evaluation.
    """
    rows = _rows(scores) if scores else {}
    values = {
        "base_model": downloads.repository_of(base or ""),
        "library_name": library,
        "pipeline_tag": task,
        "language": card_flags.card_language,
        "license": card_flags.card_license,
        "tags": ["bert"],
        "model-index": scores and rows and [_result(name, task, scores, rows)],
    }

    lines = [f"{key}: {_yaml(x)}" for key, x in values.items() if x]
    text = ["---", *lines, "---", "", f"# {_code(name)}"]
    if scores and rows:
        text += [
            "",
            f"Measured on {_code(scores.source)}:",
            "",
            "| metric | value |",
        ]
        text += [
            "|---|---|",
            *(f"| {_code(k)} | {x} |" for k, x in rows.items()),
            "",
            _MACHINE,
        ]
    atomic.write_whole(os.path.join(folder, README), "\n".join([*text, ""]))


def _rows(scores: Scores) -> dict[str, float]:
    """Metrics by their names at Hugging Face, rounded to four digits."""
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
