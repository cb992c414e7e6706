"""Log lines about a file's examples: label counts, and warnings."""

import re
import unicodedata
from collections.abc import Iterable, Iterator

import numpy as np

from bert.data import tables
from bert.data.label_kinds import CLASSES, Labels
from bert.tasks.classification.division import first_copies
from bert.tasks.classification.examples import TextExample

_SHOWN = 20  # labels in a message
_FEW = 5  # labels with fewer examples are reported


def of_labels(
    path: str, examples: list[TextExample], labels: Labels
) -> Iterator[str]:
    """Yields the counts of the labels of a file, and warnings about them.

    Args:
        path: the file.
        examples: its examples, all with labels.
        labels: the labels of the task, not REGRESSION.
    """
    values = np.array([example.label for example in examples])
    counts = values.sum(0)
    if labels.kind == CLASSES:
        counts = np.bincount(values, minlength=labels.size)

    # The most frequent first, as a message is limited to some labels.
    common = sorted(zip(labels.names, counts, strict=True), key=lambda x: -x[1])
    yield f"labels: {first(f'{name} {count:,}' for name, count in common)}"
    rare = [repr(name) for name, count in common if count < _FEW]
    if rare:
        yield f"warning: {path}: fewer than {_FEW} examples of {first(rare)}"

    # Different spellings of a label would be learned as separate classes.
    spellings: dict[str, list[str]] = {}
    for name, _ in common:
        spellings.setdefault(_spelling(name), []).append(name)
    alike = [_alike(names) for names in spellings.values() if len(names) > 1]
    if alike:
        yield (
            f"warning: {path}: labels that look alike are different classes: "
            f"{first(alike)}; use one spelling for each label"
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


def of_weights(labels: Labels, weights: tuple[float, ...]) -> str:
    """The class weights in the loss, the highest first."""
    pairs = sorted(zip(labels.names, weights), key=lambda x: -x[1])
    return f"class weights: {first(f'{name} {x:.4g}' for name, x in pairs)}"


def of_texts(path: str, examples: list[TextExample]) -> Iterator[str]:
    """Yields a warning if some examples have no text."""
    empty = [
        example.line
        for example in examples
        if not (example.text.strip() or example.text_b.strip())
    ]
    if empty:
        s = "" if len(empty) == 1 else "s"
        yield (
            f"warning: {path}: {len(empty):,} row{s} without text (line{s} "
            f"{tables.first_few(empty)})"
        )


def of_copies(path: str, examples: list[TextExample]) -> Iterator[str]:
    """Yields a warning if rows are copies of earlier rows.

    Args:
        path: the file.
        examples: its examples, with labels as in the file.
    """
    firsts = [examples[number] for number in first_copies(examples)]
    pairs = [x for x in zip(firsts, examples) if x[0] is not x[1]]
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


def of_missing_labels(path: str, examples: list[TextExample]) -> str:
    """The number of examples without a label in a file for prediction."""
    count = sum(example.label is None for example in examples)
    return (
        f"{path}: {count or len(examples):,} of {len(examples):,} rows have no "
        "label; not scored"
    )


def first(names: Iterable[str]) -> str:
    """Joins the first names for a message; adds the total if truncated."""
    names = list(names)
    shown = ", ".join(names[:_SHOWN])
    return f"{shown}, ... ({len(names)})" if len(names) > _SHOWN else shown
