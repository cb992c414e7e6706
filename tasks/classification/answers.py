"""Files of answers: the original's, one to read, and GLUE's."""

import io
import os
from collections.abc import Iterable

import numpy as np

from common.storage import write_whole
from tasks.classification import metrics
from tasks.classification.examples import (
    CLASSES,
    MULTI_LABEL,
    REGRESSION,
    Labels,
)


def write_test_results(path: str, logits: np.ndarray, labels: Labels) -> None:
    """Writes probabilities, a row a line, tabs between them, no header.

    The file of google-research/bert `run_classifier.py`.

    Args:
        path: the file.
        logits: float32 [N, C].
        labels: of the task.
    """
    found = metrics.probabilities(logits, labels.kind)
    lines = ["\t".join(map(str, row)) + "\n" for row in found]
    write_whole(path, "".join(lines))


def write_predictions(
    path: str, ids: Iterable[str], logits: np.ndarray, labels: Labels
) -> None:
    r"""Writes a table with a header: id, answer, probabilities.

    A tab or a newline in a name is written as \t or \n.

    Args:
        path: the file.
        ids: N names of the rows.
        logits: float32 [N, C].
        labels: of the task.
    """
    text = io.StringIO()
    names = [] if labels.kind == REGRESSION else list(labels.names)
    text.write("\t".join(map(_plain, ["id", "label", *names])) + "\n")
    found = metrics.probabilities(logits, labels.kind)
    told = names_of(logits, labels)
    for key, answer, row in zip(ids, told, found, strict=True):
        values = [f"{x:.6f}" for x in row] if names else []
        text.write("\t".join([_plain(key), _plain(answer), *values]) + "\n")
    write_whole(path, text.getvalue())


def write_submission(
    folder: str, name: str, ids: Iterable[str], logits: np.ndarray, labels
) -> str:
    """Writes a file as gluebenchmark.com takes it.

    Args:
        folder: of all tasks' files; it is made.
        name: of the file, without `.tsv`.
        ids: N names of the rows, those of the test file.
        logits: float32 [N, C].
        labels: of the task; scores are kept between 0 and 5.

    Returns:
        the file's path.
    """
    if labels.kind == REGRESSION:
        logits = np.clip(logits, 0.0, 5.0)
    lines = ["index\tprediction\n"]
    lines += [
        f"{key}\t{answer}\n"
        for key, answer in zip(ids, names_of(logits, labels), strict=True)
    ]
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{name}.tsv")
    write_whole(path, "".join(lines))
    return path


def names_of(logits: np.ndarray, labels: Labels) -> list[str]:
    """The answers as text: a name, several, or a number."""
    answers = metrics.answers(logits, labels.kind)
    if labels.kind == CLASSES:
        return [labels.names[i] for i in answers]
    if labels.kind == MULTI_LABEL:
        return [
            labels.separator.join(
                name for name, on in zip(labels.names, row) if on
            )
            for row in answers
        ]
    return [f"{x:.3f}" for x in answers]


def _plain(text: str) -> str:
    return text.replace("\t", "\\t").replace("\n", "\\n")
