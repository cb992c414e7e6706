"""The report of an evaluation: references, classes and worst errors."""

import numpy as np

from tasks import class_report, eval_report
from tasks.classification import answers, examples, inputs, metrics
from tasks.classification.examples import CLASSES, MULTI_LABEL, Labels


def report(
    part: inputs.Part,
    labels: Labels,
    gold: np.ndarray,
    logits: np.ndarray,
) -> dict:
    """Reports on the predictions for a file, for `eval_report.write`.

    Args:
        part: the file, with N labelled examples.
        labels: the labels of the task.
        gold: the labels, in the form of `metrics.answers`.
        logits: float32 [N, C].
    """
    found = metrics.answers(logits, labels.kind)
    if labels.kind == CLASSES:
        class_report.log_one_answer(found.tolist(), labels.names)
        return {
            "references": class_report.references_of_classes(
                gold, labels.size, "eval_accuracy", "eval_loss"
            ),
            **class_report.of_classes(gold, found, labels.names),
            "worst_errors": _worst_errors(part, labels, gold, found, logits),
        }
    if labels.kind == MULTI_LABEL:
        _, counts = np.unique(gold, axis=0, return_counts=True)
        share = float(counts.max() / counts.sum())
        return {
            "references": {f"eval_accuracy/{eval_report.MAJORITY}": share},
            "labels": list(labels.names),
            "per_class": class_report.per_class(gold, found, labels.names),
        }
    name = f"eval_loss/{eval_report.MAJORITY}"  # the mean for every example
    return {"references": {name: float(np.var(gold))}}


def _worst_errors(
    part: inputs.Part,
    labels: Labels,
    gold: np.ndarray,
    found: np.ndarray,
    logits: np.ndarray,
) -> list[dict]:
    """The wrong predictions with the highest probability, with their texts."""
    probabilities = metrics.probabilities(logits, CLASSES).max(-1)
    wrong = class_report.worst(
        {"index": i, "probability": float(probabilities[i])}
        for i in np.flatnonzero(gold != found).tolist()
    )
    rows = examples.examples(part.source, labels)
    wanted = {error["index"] for error in wrong}
    texts = {
        i: [text for text in (row.text, row.text_b) if text]
        for i, row in enumerate(rows)
        if i in wanted
    }
    names = answers.names_of(logits, labels)
    return [
        {
            "text": texts[i][0] if len(texts[i]) == 1 else texts[i],
            "label": labels.names[gold[i]],
            "predicted": names[i],
            "probability": error["probability"],
        }
        for error in wrong
        for i in [error["index"]]
    ]
