"""Writers of predictions: the original's file, a table, and GLUE's files."""

import io
import os
from collections.abc import Iterable

import numpy as np

from common import storage
from common.storage import write_whole
from tasks.classification import metrics
from tasks.classification.examples import (
    CLASSES,
    MULTI_LABEL,
    REGRESSION,
    Labels,
    TextExample,
)


def write_test_results(path: str, logits: np.ndarray, labels: Labels) -> None:
    """Writes tab-separated probabilities, one example per line, no header.

    This is `test_results.tsv` of google-research/bert `run_classifier.py`.

    Args:
        path: the file to write.
        logits: float32 [N, C].
        labels: the labels of the task.
    """
    found = metrics.probabilities(logits, labels.kind)
    lines = ["\t".join(map(str, row)) + "\n" for row in found]
    write_whole(path, "".join(lines))


def write_predictions(
    path: str,
    rows: Iterable[TextExample],
    logits: np.ndarray,
    labels: Labels,
    has_pairs: bool = False,
) -> None:
    r"""Writes a table with a header: id, label, probabilities, text, text_b.

    A tab or a newline in an id, a label or a text is written as \t or \n.

    Args:
        path: the file to write.
        rows: the N examples.
        logits: float32 [N, C].
        labels: the labels of the task.
        has_pairs: whether there is a column text_b.
    """
    text = io.StringIO()
    names = [] if labels.kind == REGRESSION else list(labels.names)
    texts = ["text", "text_b"] if has_pairs else ["text"]
    header = ["id", "label", *names, *texts]
    text.write("\t".join(map(_plain, header)) + "\n")
    found = metrics.probabilities(logits, labels.kind)
    chosen = names_of(logits, labels)
    for row, answer, chances in zip(rows, chosen, found, strict=True):
        values = [f"{x:.6f}" for x in chances] if names else []
        shown = [row.text, row.text_b][: len(texts)]
        line = [row.id, answer, *values, *shown]
        text.write("\t".join(map(_plain, line)) + "\n")
    write_whole(path, text.getvalue())


def write_submission(
    folder: str, name: str, ids: Iterable[str], logits: np.ndarray, labels
) -> str:
    """Writes a file in the format of gluebenchmark.com.

    Args:
        folder: the folder of all tasks' files; created if missing.
        name: the file name without `.tsv`.
        ids: ids of the N examples in the test file.
        logits: float32 [N, C].
        labels: the labels of the task; numbers are clipped to [0, 5].

    Returns:
        the path of the file.
    """
    if labels.kind == REGRESSION:
        logits = np.clip(logits, 0.0, 5.0)
    lines = ["index\tprediction\n"]
    lines += [
        f"{key}\t{answer}\n"
        for key, answer in zip(ids, names_of(logits, labels), strict=True)
    ]
    storage.make_folder(folder)
    path = os.path.join(folder, f"{name}.tsv")
    write_whole(path, "".join(lines))
    return path


def names_of(logits: np.ndarray, labels: Labels) -> list[str]:
    """Predictions as text: a label, several labels, or a number."""
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
    text = text.replace("\t", "\\t").replace("\n", "\\n")
    return text.replace("\r", "\\r")
