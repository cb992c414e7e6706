"""Reads examples for classification: one or two texts and a label.

    read       file -> TextRows, with labels as in the file
    label      TextRows -> TextExamples, with checked labels as numbers
    hold_out   examples -> those for training, or the held-out ones

Copies of a text, and rows of one group, are held out together. Otherwise the
model would be evaluated on texts that it was trained on.
"""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.data import tables
from bert.data.labels import CLASSES, MULTI_LABEL, REGRESSION, Labels
from bert.data.tables import InputFile
from bert.tasks import folds
from bert.tasks.classification.files import Split, TextExample, TextRow
from bert.tasks.classification.settings import Settings
from bert.tasks.evaluation import first_names


def read(path: str, split: Split, language: str = "") -> InputFile[TextRow]:
    """Reads the rows of a table, with labels as in the file.

    Args:
        path: the file.
        split: its columns.
        language: str. The language to read, if the file has several.

    Raises:
        UserError: a line is invalid, or the file has no rows.
    """
    table = tables.read(path, split.schema, TextRow, **split.options)
    rows = [x for x in table.rows if x.language in ("", language)]
    if not rows:
        raise UserError(f"no rows with {language!r}", path=path)
    return table.with_rows(rows)


def discover(table: InputFile[TextRow], labels: Labels) -> tuple[str, ...]:
    """Collects the labels of a file.

    Returns:
        the labels, sorted: numerically if all of them are whole numbers.

    Raises:
        UserError: a label is invalid, or the column does not look like labels.
    """
    path, has_header = table.path, table.cells["label"] is not None
    of_rows = _each(table, lambda row: _names(row.label, labels))
    count = Counter(itertools.chain.from_iterable(of_rows))

    # A unique label in line 1 is probably a header.
    first = next(filter(None, of_rows), [])
    others = [n for name, n in count.items() if [name] != first]
    if (
        first
        and not has_header
        and count[first[0]] == 1
        and min(others, default=0) > 1
    ):
        raise UserError(
            f"label {first[0][:60]!r} occurs only in this line",
            path=path,
            line=1,
            expected="a label",
            fix="if line 1 is a header, pass --header, else --labels",
        )

    if len(count) < 2 and labels.kind == CLASSES or not count:
        only = "".join(f": {name!r}" for name in count)
        raise UserError(
            f"{len(count) or 'no'} label{only}",
            path=path,
            expected="at least two different labels",
            fix="is this the right label column?",
        )

    # Mostly unique values are texts, ids or numbers, not labels.
    rare = sum(1 for n in count.values() if n == 1)
    if rare == len(count) > 20 or len(count) > 1000 and rare > len(count) // 2:
        raise UserError(
            f"{len(count):,} different labels, {rare:,} of them only once",
            path=path,
            expected="classes",
            fix="is this the label column? For numbers, pass --regression",
        )
    return in_order(count)


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Sorts names, numerically if all of them are whole numbers."""
    if all(re.fullmatch(r"[+-]?\d+", name) for name in names):
        return tuple(sorted(names, key=lambda name: (int(name), name)))
    return tuple(sorted(names))


def check_labelled(table: InputFile[TextRow], kind: str) -> None:
    """Rejects unlabelled rows in a file for training or evaluation.

    Args:
        table: the table; its labels are not checked yet.
        kind: the kind of labels; an empty field is valid for MULTI_LABEL.

    Raises:
        UserError: labels are missing; the message has the number of rows.
    """
    lines = [
        row.line
        for row in table.rows
        if row.label is None
        or (kind != MULTI_LABEL and not str(row.label).strip())
    ]
    if lines:
        raise UserError(
            f"rows without a label: {len(lines):,} of "
            f"{len(table.rows):,} (lines {tables.first_few(lines)})",
            path=table.path,
            expected="a label in every row of a file for training or "
            "evaluation",
            fix="fill in the labels, or move these rows to --predict_file",
        )


def label(
    table: InputFile[TextRow], labels: Labels, needed: bool, fix: str = ""
) -> list[TextExample]:
    """Checks the labels of a table.

    Args:
        table: the table.
        labels: the valid labels.
        needed: bool. Whether each row must have a label, see
            `check_labelled`; if not, missing labels become None.
        fix: str. Advice for a few rows with other labels. Default: "", to
            check the file.

    Returns:
        the examples, with labels as numbers.

    Raises:
        UserError: a label is invalid, or line 1 is an example although a
            header is expected.
    """
    names = {*labels.names, *dict(labels.aliases)}
    tables.check_header(table, names, "label", "id")

    def read(row: TextRow) -> float | list[str] | None:
        field = row.label
        if not needed and _is_absent(field, labels):
            return None
        if labels.kind == REGRESSION:
            return tables.number(field, "label")
        return _names(field, labels)

    found = _each(table, read)
    if labels.kind != REGRESSION:
        _check_known(table, found, labels, fix)
        found = [x if x is None else _encoded(x, labels) for x in found]
    has_ids = "id" in table.cells
    return [
        TextExample(
            row.id if has_ids else str(number),
            row.text,
            row.text_b,
            x,
            row.line,
            row.group,
        )
        for number, (row, x) in enumerate(zip(table.rows, found, strict=True))
    ]


def _encoded(names: list[str], labels: Labels) -> int | list[int]:
    """The id of a class, or zeros and ones for several labels."""
    if labels.kind == CLASSES:
        return labels.names.index(names[0])
    return [int(name in names) for name in labels.names]


def _check_known(
    table: InputFile[TextRow],
    found: list[list[str] | None],
    labels: Labels,
    fix: str,
) -> None:
    """Rejects rows with unknown labels; the message has their number.

    Args:
        table: the table.
        found: the names of the labels of each row.
        labels, fix: see `label`.
    """
    valid, lines, unknown = {*labels.names}, [], dict[str, None]()
    for row, names in zip(table.rows, found, strict=True):
        others = [name for name in names or () if name not in valid]
        if others:
            lines.append(row.line)
            unknown |= dict.fromkeys(others)
    if not lines:
        return

    # Many other labels are those of another file or column.
    if not fix or 2 * len(lines) >= len(table.rows):
        fix = "is this the right file and the right label column?"
    if lines[0] == 1 and table.cells.get("label") is None:
        fix = "it looks like a header, but this file should have none"
    expected = ", ".join(labels.names[:10])
    if labels.size > 10:
        expected += ", ..."
    shown = first_names(repr(name[:60]) for name in unknown)
    raise UserError(
        f"unknown label{'s' * (len(unknown) > 1)} {shown} in {len(lines):,} of "
        f"{len(table.rows):,} rows",
        path=table.path,
        line=lines[0],
        expected=f"one of {expected}",
        fix=fix,
    )


def hold_out(
    settings: Settings,
    path: str,
    rows: list[TextExample],
    labels: Labels,
    is_evaluation: bool,
) -> list[TextExample]:
    """Keeps the rows of a table for training, or the held-out ones.

    Rows are held out at random, by --eval_fraction or as a fold. Linked rows
    stay together, see `together`.

    Args:
        settings: the settings of the script.
        path: the file.
        rows: its examples.
        labels: the labels of the task. The choice is stratified by one label.
        is_evaluation: bool. Whether the held-out rows are kept.

    Raises:
        UserError: there are too few rows.
    """
    gold = None
    if labels.kind == CLASSES:
        gold = [row.label for row in rows]
    if settings.fold:
        groups = _numbered(rows, together(rows))
        is_held_out = folds.held_out(settings, path, groups, gold)
    else:
        names = [labels.names[x] for x in gold] if gold else [""] * len(rows)
        is_held_out = _drawn(settings, path, rows, names)
    return [*itertools.compress(rows, is_held_out == is_evaluation)]


def _drawn(
    settings: Settings, path: str, rows: list[TextExample], strata: list[str]
) -> NDArray:
    """Draws --eval_fraction of the rows of a table.

    Args:
        settings: the settings of the script.
        path: the file.
        rows: its N examples.
        strata: N strings. Equal ones are drawn separately.

    Returns:
        bool [N], whether a row is held out.
    """
    firsts, fraction = together(rows), settings.eval_fraction
    by_stratum: dict[str, list[int]] = {}
    for number in sorted(set(firsts)):
        by_stratum.setdefault(strata[number], []).append(number)
    seed = settings.split_seed % 2**63  # it may be negative
    generator, chosen = np.random.default_rng(seed), set()
    for _, numbers in sorted(by_stratum.items()):
        drawn = generator.permutation(numbers)
        if len(numbers) > 1:  # a label that occurs once stays in training
            count = max(1, round(fraction * len(numbers)))
            chosen.update(drawn[:count].tolist())
    if not 0 < len(chosen) < len(set(firsts)):
        raise UserError(
            f"--eval_fraction={fraction} of {len(set(firsts)):,} different "
            "texts",
            path=path,
            expected="enough for training and evaluation",
        )
    return np.array([number in chosen for number in firsts])


def first_copies(rows: Sequence[TextRow | TextExample]) -> list[int]:
    """Maps each row or example to the index of the first one with its texts."""
    numbers: dict[tuple[str, str], int] = {}
    return [
        numbers.setdefault((row.text, row.text_b), number)
        for number, row in enumerate(rows)
    ]


def together(rows: list[TextExample]) -> list[int]:
    """Maps each example to the index of the first one linked to it.

    Two examples are linked if they share their texts or a group. Links are
    transitive: a copy of a text in another group links both groups.
    """
    from scipy import sparse  # takes 0.1 s, before mistakes are reported
    from scipy.sparse import csgraph

    firsts: dict[str, int] = {}  # group -> its first example
    numbers = np.arange(len(rows))
    others = first_copies(rows)
    others += [
        firsts.setdefault(row.group, number) if row.group else number
        for number, row in enumerate(rows)
    ]
    links = (np.ones(len(others)), (np.tile(numbers, 2), others))
    graph = sparse.coo_array(links, (len(numbers), len(numbers)))
    _, components = csgraph.connected_components(graph, directed=False)
    _, first_of = np.unique(components, return_index=True)
    return first_of[components].tolist()


def _numbered(rows: list[TextExample], firsts: list[int]) -> list[int]:
    """Numbers the groups in the order of their names, as scikit-learn does.

    Args:
        rows: the N examples.
        firsts: the result of `together`.

    Returns:
        N numbers, equal for linked examples. Groups that share a text get the
        lowest of their numbers; examples without a group follow.
    """
    names = in_order({x.group for x in rows} - {""})
    ranks = {name: number for number, name in enumerate(names)}
    numbers: dict[int, int] = {}
    for first, example in zip(firsts, rows, strict=True):
        number = ranks.get(example.group, len(names) + first)
        numbers[first] = min(number, numbers.get(first, number))
    return [numbers[first] for first in firsts]


def _each(
    table: InputFile[TextRow], function: Callable[[TextRow], object]
) -> list:
    """Calls a function on each row; adds path and line to errors."""
    found = []
    for row in table.rows:
        with json_files.reported(table.path, line=row.line):
            found.append(function(row))
    return found


def _names(field, labels: Labels) -> list[str]:
    """Names of the labels in a field."""
    values = [field]
    if labels.kind == MULTI_LABEL:
        if isinstance(field, list):
            values = field
        elif isinstance(field, str):
            if field.strip()[:1] + field.strip()[-1:] == "[]":
                raise UserError(
                    f"a list as text, {field[:60]!r}",
                    expected=f"labels separated by {labels.separator!r}",
                    fix="write the lists to a .jsonl file",
                )
            values = [x for x in field.split(labels.separator) if x.strip()]

    names = []
    for value in values:
        name = str(value).lower() if isinstance(value, bool) else value
        name = tables.text(name, "label").strip()
        if not name:
            raise UserError("no label")
        names.append(dict(labels.aliases).get(name, name))
    return names


def _is_absent(field, labels: Labels) -> bool:
    """Whether a label is missing in a row of a file for prediction."""
    if field is None:
        return True
    text = str(field).strip()
    # Test sets of Hugging Face have -1 for unknown labels.
    if labels.kind == CLASSES and "-1" not in labels.names:
        return text in ("", "-1", "-1.0")
    return not text and labels.kind != MULTI_LABEL
