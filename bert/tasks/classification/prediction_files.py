"""Files of predictions for texts."""

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bert.common import storage
from bert.common.atomic import write_whole
from bert.common.formats.json_files import Json
from bert.data.labels import CLASSES, REGRESSION
from bert.data.tables import InputFile
from bert.tasks.classification.files import TextExample

if TYPE_CHECKING:  # it imports this module
    from bert.tasks.classification.task import TextClassification

OUT_OF_FOLD = "out_of_fold.tsv"


def write(
    folder: str,
    file: InputFile[TextExample],
    predictions: list[dict],
    task: "TextClassification",
) -> list[str]:
    """Writes `test_results.tsv` and `predictions.tsv`; returns the paths.

    Args:
        folder: str. Folder to write to.
        file: the file with N examples.
        predictions: N predictions, see `decode` of the task.
        task: the `TextClassification`.
    """
    subset = f"_{file.subset}" if file.subset else ""
    probabilities, table = (
        os.path.join(folder, f"{stem}{subset}.tsv")
        for stem in ("test_results", "predictions")
    )
    write_test_results(probabilities, predictions)
    write_predictions(table, file.rows, predictions, task)
    return [probabilities, table]


def write_test_results(path: str, predictions: list[dict]) -> None:
    """Writes tab-separated probabilities, one example per line, no header.

    This is `test_results.tsv` of google-research/bert `run_classifier.py`.

    Args:
        path: the file to write.
        predictions: see `write`.
    """
    lines = (
        "\t".join(map(_digits, x.get("probabilities", x).values())) + "\n"
        for x in predictions
    )
    write_whole(path, "".join(lines))


def write_predictions(
    path: str,
    rows: list,
    predictions: list[dict],
    task: "TextClassification",
    folds: list[str] | None = None,
) -> None:
    """Writes `predictions.tsv`, a table with a header.

    Its columns are id, predicted, probability of the predicted class (for
    CLASSES), label (if there are any), the probabilities of all labels, text,
    text_b and fold.

    Args:
        path: the file to write.
        rows: the N examples.
        predictions: see `write`.
        task: the `TextClassification`.
        folds: list of str or None. Name of the fold of each example; None
            writes no column fold.
    """
    labels = task.labels
    columns: list[tuple[str, Iterable[str]]] = [
        ("id", [row.id for row in rows]),
        ("predicted", [_text(x, labels.separator) for x in predictions]),
    ]

    if labels.kind != REGRESSION:
        chances = [x["probabilities"] for x in predictions]
        if labels.kind == CLASSES:
            # A rejected prediction is the most probable class.
            given = [
                max(x["probabilities"].values())
                if x["label"] is None
                else x["probabilities"][x["label"]]
                for x in predictions
            ]
            columns.append(("probability", map(_decimals, given)))

    if any(row.label is not None for row in rows):
        texts = [_shown(row.label, task) for row in rows]
        columns.append(("label", texts))
    if labels.kind != REGRESSION:
        for name in labels.names:
            column = [_decimals(x[name]) for x in chances]
            columns.append((name, column))

    columns.append(("text", [row.text for row in rows]))
    if "text_b" in task.inputs:
        columns.append(("text_b", [row.text_b for row in rows]))
    if folds is not None:
        columns.append(("fold", folds))

    header, values = zip(*columns)
    _write_table(path, header, zip(*values, strict=True))


def write_submission(
    folder: str, name: str, rows: list[TextExample], predictions: list[dict]
) -> str:
    """Writes a file in the format of gluebenchmark.com.

    Args:
        folder: the folder for the files of all tasks; created if missing.
        name: the name of the submission.
        rows: the N examples.
        predictions: see `write`; numbers are clipped to [0, 5].

    Returns:
        the path of the file.
    """
    lines = ["index\tprediction\n"]
    for row, prediction in zip(rows, predictions, strict=True):
        # The scale of STS-B; the network may predict values outside of it.
        if "value" in prediction:
            prediction = {"value": min(max(prediction["value"], 0.0), 5.0)}
        lines.append(f"{row.id}\t{_text(prediction)}\n")
    storage.make_folder(folder)
    path = os.path.join(folder, f"{name}.tsv")
    write_whole(path, "".join(lines))
    return path


def _text(prediction: dict, separator: str = ",") -> str:
    """A prediction as text.

    Returns:
        for CLASSES a name, or "" if rejected; for MULTI_LABEL the names,
        joined; for REGRESSION all digits of the float32, so that different
        numbers stay different.
    """
    if "value" in prediction:
        return _digits(prediction["value"])
    label = prediction["label"]
    return separator.join(label) if isinstance(label, list) else label or ""


def _shown(label: Json, task: "TextClassification") -> str:
    """The label of an example as text; "" without a label."""
    if label is None:
        return ""
    shown = task.shown(label)
    if isinstance(shown, list):
        return task.labels.separator.join(shown)
    return str(shown)


def _digits(value: float) -> str:
    """All digits of a float32."""
    return str(np.float32(value))


def _decimals(value: float) -> str:
    return f"{value:.6f}"


def _write_table(
    path: str, header: Sequence[str], lines: Iterable[Sequence[str]]
) -> None:
    r"""Writes a table; in a field, a tab becomes \t and a backslash \\."""
    escapes = str.maketrans(
        {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"}
    )
    texts = (
        "\t".join(field.translate(escapes) for field in line) + "\n"
        for line in (header, *lines)
    )
    write_whole(path, "".join(texts))
