"""Writes predictions as files, and reports on their errors."""

import dataclasses
import io
import itertools
import os
from collections.abc import Iterable, Sequence

import numpy as np

from bert.common import storage
from bert.common.atomic import write_whole
from bert.common.progress import log
from bert.data import postprocessing
from bert.data.postprocessing import CLASSES, MULTI_LABEL, REGRESSION, Labels
from bert.tasks import class_report, eval_report, sweep
from bert.tasks.classification import inputs
from bert.tasks.classification.datasets import DEV, Split, TextExample
from bert.tasks.classification.settings import Settings
from bert.tasks.run_folder import RunFolder

HELD_OUT = "held_out_logits.npy"
OUT_OF_FOLD = "out_of_fold.tsv"


def write_test_results(path: str, logits: np.ndarray, labels: Labels) -> None:
    """Writes tab-separated probabilities, one example per line, no header.

    This is `test_results.tsv` of google-research/bert `run_classifier.py`.

    Args:
        path: the file to write.
        logits: float32 [N, C].
        labels: the labels of the task, with their post-processing.
    """
    found = postprocessing.probabilities(logits, labels.kind, labels.decision)
    lines = ["\t".join(map(str, row)) + "\n" for row in found]
    write_whole(path, "".join(lines))


def write_predictions(
    path: str,
    rows: list[TextExample],
    logits: np.ndarray,
    labels: Labels,
    has_pairs: bool = False,
    folds: list[str] | None = None,
) -> None:
    """Writes `predictions.tsv`, a table with a header.

    Its columns are id, predicted, probability of the predicted class (for
    CLASSES), label (if there are any), the probabilities of all labels, text,
    text_b and fold.

    Args:
        path: the file to write.
        rows: the N examples.
        logits: float32 [N, C].
        labels: the labels of the task, with their post-processing.
        has_pairs: bool. Whether to write the column text_b.
        folds: list of str or None. Name of the fold of each example; None
            writes no column fold.
    """
    kind, decision = labels.kind, labels.decision
    chances = postprocessing.probabilities(logits, kind, decision)
    columns = [
        ("id", [row.id for row in rows]),
        ("predicted", names_of(logits, labels)),
    ]
    if kind == CLASSES:
        predicted = postprocessing.predictions(logits, kind, decision)
        given = postprocessing.predicted_probabilities(chances, predicted)
        columns.append(("probability", _decimals(given)))
    if any(row.label is not None for row in rows):
        columns.append(("label", [_label(row.label, labels) for row in rows]))
    if kind != REGRESSION:
        columns += zip(labels.names, map(_decimals, chances.T))
    columns.append(("text", [row.text for row in rows]))
    if has_pairs:
        columns.append(("text_b", [row.text_b for row in rows]))
    if folds is not None:
        columns.append(("fold", folds))

    header, values = zip(*columns)
    _write_table(path, header, zip(*values, strict=True))


def write_logits(folder: str, logits: np.ndarray) -> None:
    """Writes the logits of the held-out rows of a fold, float32 [N, C]."""
    content = io.BytesIO()
    np.save(content, logits)
    write_whole(os.path.join(folder, HELD_OUT), content.getvalue())


def read_logits(folder: str) -> np.ndarray:
    """Reads the logits of the held-out rows of a fold, float32 [N, C]."""
    with storage.open_file(os.path.join(folder, HELD_OUT), "rb") as file:
        return np.load(io.BytesIO(file.read()))


def write_submission(
    folder: str, name: str, ids: Iterable[str], logits: np.ndarray, labels
) -> str:
    """Writes a file in the format of gluebenchmark.com.

    Args:
        folder: the folder for the files of all tasks; created if missing.
        name: the file name without `.tsv`.
        ids: ids of the N examples in the test file.
        logits: float32 [N, C].
        labels: the labels of the task; numbers are clipped to [0, 5].

    Returns:
        the path of the file.
    """
    # The scale of STS-B; the network may predict values outside of it.
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


def join_folds(settings: Settings, folder: RunFolder) -> tuple[list[str], dict]:
    """Writes the out-of-fold predictions for all rows.

    Args:
        settings: the settings of the script, with --num_folds.
        folder: the folder of all runs, which have written their logits.

    Returns:
        the path of the file in a list, and a report on all rows, see `report`.
    """
    held_out = []
    for trial in sweep.expand_trials(settings):
        path = trial.settings.output_dir
        data = inputs.read(RunFolder(path, path, settings=trial.settings))
        (split,) = data.split(DEV)
        logits = read_logits(folder.file(trial.name))
        each = zip(split.examples, logits, strict=True)
        held_out += [(row, values, trial.name) for row, values in each]
    held_out.sort(key=lambda x: x[0].line)
    rows, all_logits, names = map(list, zip(*held_out))
    logits, labels = np.stack(all_logits), data.labels

    path = folder.file(OUT_OF_FOLD)
    write_predictions(path, rows, logits, labels, data.has_pairs, names)
    whole = dataclasses.replace(split, examples=rows)
    found = postprocessing.predictions(logits, labels.kind, labels.decision)
    return [path], report(whole, labels, logits, found)


def report(
    split: Split, labels: Labels, logits: np.ndarray, found: np.ndarray
) -> dict:
    """Reports on the predictions for a file, for `eval_report.write`.

    Args:
        split: the file, with N labelled examples.
        labels: the labels of the task.
        logits: float32 [N, C].
        found: the predictions, see `postprocessing.predictions`.
    """
    gold = split.labels
    if labels.kind == REGRESSION:
        # Baseline: the best constant prediction, the mean or the median.
        error = float(np.abs(gold - np.median(gold)).mean())
        baselines = {
            f"eval_loss/{eval_report.MAJORITY}": float(np.var(gold)),
            f"eval_mae/{eval_report.MAJORITY}": error,
        }
        return {"references": baselines}

    _say_never_predicted(split, labels, found)
    if labels.kind == CLASSES:
        class_report.log_one_answer([labels.names[i] for i in found])
        return {
            "references": class_report.baselines_of_classes(
                gold, labels.size, "eval_accuracy", "eval_loss"
            ),
            **class_report.of_classes(gold, found, labels.names),
            "worst_errors": worst(split.examples, labels, logits, found),
        }

    # Accuracy compares whole sets of labels.
    class_report.log_one_answer(
        [list(itertools.compress(labels.names, row)) for row in found]
    )
    _, counts = np.unique(gold, axis=0, return_counts=True)
    share = float(counts.max() / counts.sum())
    return {
        "references": {f"eval_accuracy/{eval_report.MAJORITY}": share},
        "labels": list(labels.names),
        "per_class": class_report.per_class(gold, found, labels.names),
    }


def _say_never_predicted(
    split: Split, labels: Labels, found: np.ndarray
) -> None:
    """Warns about labels of the file that are never predicted.

    Args:
        split: the file, with N labelled examples.
        labels: the labels of the task, not REGRESSION.
        found: the predictions.
    """
    of_labels, of_predictions = (
        x.sum(0) if x.ndim == 2 else np.bincount(x, minlength=labels.size)
        for x in (split.labels, found)
    )
    never = [
        f"{name!r} ({count:,})"
        for name, count, given in zip(labels.names, of_labels, of_predictions)
        if count and not given
    ]
    if never:
        names = inputs.first_names(never)
        log(
            f"warning: {split.path}: never predicted, with the number of "
            f"examples: {names}; pass --class_weights=balanced, or train for "
            "more epochs"
        )


def worst(
    rows: Iterable[TextExample],
    labels: Labels,
    logits: np.ndarray,
    found: np.ndarray,
) -> list[dict]:
    """Lists the wrong predictions with the highest probability.

    Args:
        rows: the N examples.
        labels: the labels of the task, CLASSES.
        logits: float32 [N, C].
        found: int [N]. The predicted classes.

    Returns:
        a dict for each, with id, line, text, label, predicted, probability.
    """
    chances = postprocessing.probabilities(logits, CLASSES, labels.decision)
    of_predicted = postprocessing.predicted_probabilities(chances, found)
    wrong = (
        {
            "id": row.id,
            "line": row.line,
            "text": [row.text, row.text_b] if row.text_b else row.text,
            "label": labels.names[row.label],
            "predicted": labels.names[answer],
            "probability": float(chance),
        }
        for row, answer, chance in zip(rows, found, of_predicted, strict=True)
        if row.label != answer
    )
    return class_report.worst(wrong)


def names_of(logits: np.ndarray, labels: Labels) -> list[str]:
    """Converts logits to predictions as text.

    Returns:
        N strings. For CLASSES a name, or "" if rejected; for MULTI_LABEL the
        names, joined; for REGRESSION all digits of the float32, so that
        different numbers stay different.
    """
    answers = postprocessing.predictions(logits, labels.kind, labels.decision)
    if labels.kind == REGRESSION:
        return [str(x) for x in answers]
    names = [_label(answer, labels) for answer in answers]
    if labels.kind == CLASSES:
        pairs = zip(names, postprocessing.is_rejected(logits, labels.decision))
        names = ["" if is_unknown else name for name, is_unknown in pairs]
    return names


def _label(label, labels: Labels) -> str:
    """The label of an example as text; "" without a label."""
    if label is None:
        return ""
    if labels.kind == CLASSES:
        return labels.names[label]
    if labels.kind == MULTI_LABEL:
        chosen = (name for name, on in zip(labels.names, label) if on)
        return labels.separator.join(chosen)
    return str(label)


def _decimals(chances: np.ndarray) -> list[str]:
    return [f"{x:.6f}" for x in chances]


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
