"""Notes and warnings about the files of run_classifier.py."""

import re
import unicodedata
from collections.abc import Iterator

import numpy as np

from bert.data import tables
from bert.data.labels import CLASSES, REGRESSION, Labels
from bert.data.tables import InputFile
from bert.tasks.classification import examples
from bert.tasks.classification.files import TextExample, TextRow, is_labelled
from bert.tasks.evaluation import first_names
from bert.tasks.task import DEV, TRAIN

_FEW = 5  # labels with fewer examples are reported


def of_file(
    split: str,
    table: InputFile[TextRow],
    file: InputFile[TextExample],
    labels: Labels,
    weights: tuple[float, ...],
) -> Iterator[str]:
    """Yields notes and warnings about a file of a run.

    Args:
        split: str. TRAIN, DEV, TEST or UNLABELLED.
        table: all rows of the file, with labels as in the file.
        file: the file, with the examples that are used.
        labels: the labels of the task.
        weights: the weights of the labels in the loss of training, or ().
    """
    if split == TRAIN and labels.kind != REGRESSION:
        yield from label_notes(file.path, file.rows, labels)
        if weights:
            yield weights_note(labels, weights)
    yield from empty_text_notes(file.path, table.rows)
    if split in (TRAIN, DEV):
        yield from copy_notes(file.path, table.rows)
    elif "label" in table.cells and not is_labelled(file.rows):
        yield missing_labels_note(file.path, file.rows)


def label_notes(
    path: str, rows: list[TextExample], labels: Labels
) -> Iterator[str]:
    """Yields the counts of the labels of a file, and warnings about them.

    Args:
        path: the file.
        rows: its rows, all with labels.
        labels: the labels of the task, not REGRESSION.
    """
    values = np.array([row.label for row in rows])
    counts = values.sum(0)
    if labels.kind == CLASSES:
        counts = np.bincount(values, minlength=labels.size)

    # The most frequent first, as a message is limited to some labels.
    common = sorted(zip(labels.names, counts, strict=True), key=lambda x: -x[1])
    shown = (f"{name} {count:,}" for name, count in common)
    yield f"labels: {first_names(shown)}"
    rare = [repr(name) for name, count in common if count < _FEW]
    if rare:
        names = first_names(rare)
        yield f"warning: {path}: fewer than {_FEW} examples of {names}"

    # Different spellings of a label would be learned as separate classes.
    spellings: dict[str, list[str]] = {}
    for name, _ in common:
        spellings.setdefault(_spelling(name), []).append(name)
    alike = [_alike(names) for names in spellings.values() if len(names) > 1]
    if alike:
        yield (
            f"warning: {path}: labels that look alike are different classes: "
            f"{first_names(alike)}; use one spelling for each label"
        )


def _spelling(name: str) -> str:
    """Normalizes a label: case, blanks, invisible characters; 1.0 is 1."""
    visible = "".join(
        x for x in name if not (x.isspace() or unicodedata.category(x) == "Cf")
    )
    plain = unicodedata.normalize("NFKC", visible).casefold()
    return re.sub(r"^([+-]?\d+)\.0+$", r"\1", plain)


def _alike(names: list[str]) -> str:
    """Joins labels that look alike; escaped if they look identical."""
    looks = {unicodedata.normalize("NFC", name) for name in names}
    show = ascii if len(looks) < len(names) else repr
    return " and ".join(map(show, names))


def weights_note(labels: Labels, weights: tuple[float, ...]) -> str:
    """The class weights in the loss, the highest first."""
    pairs = sorted(zip(labels.names, weights), key=lambda x: -x[1])
    shown = (f"{name} {x:.4g}" for name, x in pairs)
    return f"class weights: {first_names(shown)}"


def empty_text_notes(path: str, rows: list[TextRow]) -> Iterator[str]:
    """Yields a warning if some rows have no text."""
    empty = [
        row.line for row in rows if not (row.text.strip() or row.text_b.strip())
    ]
    if empty:
        s = "" if len(empty) == 1 else "s"
        yield (
            f"warning: {path}: {len(empty):,} row{s} without text (line{s} "
            f"{tables.first_few(empty)})"
        )


def copy_notes(path: str, rows: list[TextRow]) -> Iterator[str]:
    """Yields a warning if rows are copies of earlier rows.

    Args:
        path: the file.
        rows: its rows, with labels as in the file.
    """
    firsts = [rows[number] for number in examples.first_copies(rows)]
    pairs = [x for x in zip(firsts, rows) if x[0] is not x[1]]
    contradictions = [
        copy.line
        for first, copy in pairs
        if str(copy.label).strip() != str(first.label).strip()
    ]
    if pairs:
        lines = tables.first_few([copy.line for _, copy in pairs])
        copies = "copies of earlier rows (lines"
        if len(pairs) == 1:
            copies = "copy of an earlier row (line"
        more = ""
        if contradictions:
            more = (
                f", {len(contradictions):,} of them with another label (lines "
                f"{tables.first_few(contradictions)})"
            )
        yield (f"warning: {path}: {len(pairs):,} {copies} {lines}){more}")


def missing_labels_note(path: str, rows: list[TextExample]) -> str:
    """The number of examples without a label in a file for prediction."""
    count = sum(row.label is None for row in rows)
    return (
        f"{path}: {count or len(rows):,} of {len(rows):,} rows have no "
        "label; not scored"
    )
