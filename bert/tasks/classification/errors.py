"""The report of an evaluation: references, classes and worst errors."""

import itertools
from collections.abc import Iterable

import numpy as np

from bert.data import label_kinds
from bert.data.label_kinds import CLASSES, MULTI_LABEL, Labels
from bert.tasks import class_report, eval_report
from bert.tasks.classification import examples, inputs


def report(part: inputs.Part, labels: Labels, logits: np.ndarray) -> dict:
    """Reports on the predictions for a file, for `eval_report.write`.

    Args:
        part: the file, with N labelled examples.
        labels: the labels of the task.
        logits: float32 [N, C].
    """
    gold = part.labels
    found = label_kinds.answers(logits, labels.kind)
    if labels.kind == CLASSES:
        class_report.log_one_answer([labels.names[i] for i in found])
        return {
            "references": class_report.references_of_classes(
                gold, labels.size, "eval_accuracy", "eval_loss"
            ),
            **class_report.of_classes(gold, found, labels.names),
            "worst_errors": worst(part.examples, labels, logits),
        }
    if labels.kind == MULTI_LABEL:
        class_report.log_one_answer(
            [list(itertools.compress(labels.names, row)) for row in found]
        )

        # A set of labels counts as one answer, right as a whole or wrong.
        _, counts = np.unique(gold, axis=0, return_counts=True)
        share = float(counts.max() / counts.sum())
        return {
            "references": {f"eval_accuracy/{eval_report.MAJORITY}": share},
            "labels": list(labels.names),
            "per_class": class_report.per_class(gold, found, labels.names),
        }
    name = f"eval_loss/{eval_report.MAJORITY}"  # the mean for every example
    return {"references": {name: float(np.var(gold))}}


def worst(
    rows: Iterable[examples.TextExample],
    labels: Labels,
    logits: np.ndarray,
) -> list[dict]:
    """The wrong predictions with the highest probability, with their rows.

    Args:
        rows: the N examples.
        labels: the labels of the task, CLASSES.
        logits: float32 [N, C].
    """
    probabilities = label_kinds.probabilities(logits, CLASSES)
    found = zip(rows, logits.argmax(-1), probabilities, strict=True)
    wrong = (
        {
            "id": row.id,
            "line": row.line,
            "text": [row.text, row.text_b] if row.text_b else row.text,
            "label": labels.names[row.label],
            "predicted": labels.names[answer],
            "probability": float(chances[answer]),
        }
        for row, answer, chances in found
        if row.label != answer
    )
    return class_report.worst(wrong)
