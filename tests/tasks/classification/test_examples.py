"""Labels of the rows of a file, and rows that are held out of it."""

import dataclasses
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph

from bert.common.errors import UserError
from bert.data.labels import CLASSES, MULTI_LABEL, REGRESSION, Labels
from bert.tasks.classification import examples as classification
from bert.tasks.classification.files import Split, TextExample, schema_of
from bert.tasks.classification.settings import Settings
from bert.tasks.task import TRAIN

YES_NO = Labels(names=("no", "yes"))
BOOLEAN = Labels(names=("false", "true"))
SIGNED = Labels(names=("-1", "1"))
ALIAS = dataclasses.replace(YES_NO, aliases=(("jawohl", "yes"),))
ABC = Labels(MULTI_LABEL, ("a", "b", "c"))
NUMBER = Labels(REGRESSION)


def write(tmp_path, content, name="x.tsv"):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return str(path)


def file_of(path, *names, header=True, **named):
    """A file with these columns."""
    options = {"header": header}
    return path, Split("", TRAIN, schema_of(*names, **named), options=options)


def read(file, labels, needed=True):
    table = classification.read(*file)
    return [e[:4] for e in classification.label(table, labels, needed)]


UNKNOWN = "unknown label 'maybe'"
LIST = "x.tsv:1: a list as text, \"['a', 'b']\"; expected labels separated"


@pytest.mark.parametrize(
    ("row", "labels", "needed", "found"),
    [
        ("one\t jawohl", ALIAS, True, 1),
        ("one\tc, a", ABC, True, [1, 0, 1]),
        ("one\t", ABC, True, [0, 0, 0]),
        ('{"t": "one", "l": ["b"]}', ABC, True, [0, 1, 0]),
        ('{"t": "one", "l": true}', BOOLEAN, True, 1),
        ("one\t-3.25", NUMBER, True, -3.25),
        ("one\tmaybe", YES_NO, True, f"x.tsv:1: {UNKNOWN}"),
        ("one\tl", YES_NO, True, "it looks like a header"),
        ("one\t", YES_NO, True, "x.tsv:1: no label"),
        ("one\tnan", NUMBER, True, "x.tsv:1: label 'nan'; expected a number"),
        ("one\t['a', 'b']", ABC, True, LIST),
        # In a file to predict, a label may be missing.
        ("one\t ", YES_NO, False, None),
        ("one\t ", NUMBER, False, None),
        ('{"t": "one", "l": null}', YES_NO, False, None),
        ('{"t": "one", "l": null}', ABC, False, None),
        ('{"t": "one", "l": null}', NUMBER, False, None),
        # As in the test files of Hugging Face's GLUE.
        ("one\t-1", YES_NO, False, None),
        ("one\t-1.0", YES_NO, False, None),
        ("one\t-1", SIGNED, False, 0),
        ("one\t-1", NUMBER, False, -1.0),
        ("one\tmaybe", YES_NO, False, UNKNOWN),
    ],
)
def test_a_label_becomes_a_number(tmp_path, row, labels, needed, found):
    if row[0] == "{":
        source = file_of(write(tmp_path, row, "x.jsonl"), "t", label="l")
    else:
        source = file_of(write(tmp_path, row), 0, label=1, header=False)
    if isinstance(found, str):
        with pytest.raises(UserError) as error:
            read(source, labels, needed)
        assert found in str(error.value)
    else:
        assert [x[3] for x in read(source, labels, needed)] == [found]


@pytest.mark.parametrize(
    ("rows", "labels", "message"),
    [
        (
            ["no"] * 9 + ["maybe", "perhaps", "maybe"],
            YES_NO,
            "x.tsv:11: unknown labels 'maybe', 'perhaps' in 3 of 12 rows; "
            "expected one of no, yes; more",
        ),
        (
            ["a,b"] * 3 + ["d,c"],
            ABC,
            "x.tsv:5: unknown label 'd' in 1 of 4 rows; expected one of a, b, "
            "c; more",
        ),
        # Other labels in half of the rows: another file or column.
        (
            ["no", "maybe"],
            YES_NO,
            "x.tsv:3: unknown label 'maybe' in 1 of 2 rows; expected one of "
            "no, yes; is this the right file and the right label column?",
        ),
    ],
)
def test_rows_with_unknown_labels_are_counted(tmp_path, rows, labels, message):
    lines = "".join(f"text {i}\t{x}\n" for i, x in enumerate(rows))
    path = write(tmp_path, f"t\tl\n{lines}")
    table = classification.read(*file_of(path, "t", label="l"))
    with pytest.raises(UserError) as error:
        classification.label(table, labels, True, "more")
    assert str(error.value).endswith(message)


@pytest.mark.parametrize("labels", [YES_NO, ABC, NUMBER], ids=str)
def test_rows_without_a_label_are_counted(tmp_path, labels):
    """In files for training; only several labels may be an empty field."""
    rows = "one\t1\ntwo\t \nthree\t1\n"
    table = classification.read(
        *file_of(write(tmp_path, rows), 0, label=1, header=False)
    )
    if labels == ABC:
        classification.check_labelled(table, labels.kind)
        lacking = [x._replace(label=None) for x in table.rows]
        table = dataclasses.replace(table, rows=lacking)
    with pytest.raises(UserError, match="rows without a label: . of 3 .lines"):
        classification.check_labelled(table, labels.kind)


def test_only_rows_of_the_language_are_kept(tmp_path):
    path = write(tmp_path, "l\tt\nzh\tone\nde\ttwo\nzh\tthree\n")
    source = file_of(path, 1, language=0)
    table = classification.read(*source, "zh")
    found = classification.label(table, YES_NO, needed=False)
    assert [x[:2] for x in found] == [("0", "one"), ("1", "three")]
    with pytest.raises(UserError, match="no rows with 'xx'"):
        classification.read(*source, "xx")


MANY = "".join(f"text {i}\n" for i in range(1009))
SOME = "".join(f"text {i}\n" for i in range(21))


@pytest.mark.parametrize(
    ("rows", "kind", "header", "found"),
    [
        ("b\na\nb\na\n", CLASSES, True, ("a", "b")),
        ("10\n9\n10\n9\n", CLASSES, True, ("9", "10")),
        ("b,a\n\nc\n", MULTI_LABEL, True, ("a", "b", "c")),
        ("a\n\na\n", MULTI_LABEL, True, ("a",)),
        # A label that occurs once is a header only if the others are frequent.
        ("c\na\na\nb\n", CLASSES, False, ("a", "b", "c")),
        ("c\na\na\nb\nb\n", CLASSES, False, "line 1 is a header, pass --hea"),
        ("c\na\na\nb\nb\n", CLASSES, True, ("a", "b", "c")),
        ("same\nsame\n", CLASSES, True, "1 label: 'same'"),
        ("\n\n \n", MULTI_LABEL, True, "no label; expected at least two"),
        (MANY, CLASSES, True, "1,009 different labels"),
        (SOME, CLASSES, False, "21 different labels, 21 of them only once"),
    ],
)
def test_labels_are_found_in_a_file(tmp_path, rows, kind, header, found):
    lines = [f"{x}\tt" for x in rows.split("\n")[:-1]]
    path = write(tmp_path, "\n".join([*["l\tt"] * header, *lines]))
    table = classification.read(*file_of(path, 1, label=0, header=header))
    if isinstance(found, str):
        with pytest.raises(UserError, match=found):
            classification.discover(table, Labels(kind))
    else:
        assert classification.discover(table, Labels(kind)) == found


def test_a_header_that_is_data_is_rejected(tmp_path):
    labelled = file_of(write(tmp_path, "one\tyes\n" * 2), 0, label=1)
    with pytest.raises(UserError, match="'yes' in the column of the label"):
        read(labelled, YES_NO)
    numbered = file_of(write(tmp_path, "0\tone\n" * 2), 1, id=0)
    with pytest.raises(UserError, match="'0' in the column of the id"):
        read(numbered, YES_NO)
    good = file_of(write(tmp_path, "id\tsentence\n0\tone\n"), 1, id=0)
    read(good, YES_NO, needed=False)


ROWS = st.lists(
    st.tuples(
        st.tuples(st.sampled_from("abcdef"), st.sampled_from(["", "z"])),
        st.sampled_from(["", "", "", "p", "q", "r"]),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=60,
)


def linked(rows):
    """Connected components of rows that share a text or a group."""
    links = [
        [a == b or bool(c) and c == d for b, d, _ in rows] for a, c, _ in rows
    ]
    _, numbers = csgraph.connected_components(np.array(links))
    return [numbers.tolist().index(x) for x in numbers]


def hold_out(settings, rows, labels):
    """Rows for training, and held-out ones, by their lines."""
    sides = [
        classification.hold_out(settings, "x.csv", rows, labels, is_evaluation)
        for is_evaluation in (False, True)
    ]
    return [[row.line for row in side] for side in sides]


@given(ROWS, st.sampled_from([0.01, 0.2, 0.5]), st.integers(-3, 3))
def test_a_fraction_of_linked_rows_of_each_label_is_held_out(
    drawn, fraction, seed
):
    """A label whose rows are all linked stays in training."""
    rows = [
        TextExample("", *texts, label, line, group)
        for line, (texts, group, label) in enumerate(drawn)
    ]
    firsts = linked(drawn)
    assert classification.together(rows) == firsts
    settings = Settings(eval_fraction=fraction, random_seed=seed)
    for labels in (Labels(names=("a", "b", "c")), NUMBER):
        counts = Counter(
            rows[x].label if labels.names else 0 for x in {*firsts}
        )
        expected = {
            label: max(1, round(fraction * n))
            for label, n in counts.items()
            if n > 1
        }
        if not expected:
            with pytest.raises(UserError, match=f"--eval_fraction={fraction}"):
                hold_out(settings, rows, labels)
            continue
        train, held_out = hold_out(settings, rows, labels)
        assert sorted(train + held_out) == [*range(len(rows))]
        chosen = {firsts[x] for x in held_out}
        assert not chosen & {firsts[x] for x in train}
        found = Counter(rows[x].label if labels.names else 0 for x in chosen)
        assert found == expected
        assert hold_out(settings, rows, labels) == [train, held_out]


def test_another_seed_holds_out_other_rows():
    rows = [TextExample(text=str(i), label=0, line=i) for i in range(61)]
    sides = [
        hold_out(Settings(eval_fraction=0.3, random_seed=x), rows, NUMBER)
        for x in (7, 8)
    ]
    assert sides[0] != sides[1]
    later = Settings(eval_fraction=0.3, random_seed=8, first_seed=7)
    assert hold_out(later, rows, NUMBER) == sides[0]
