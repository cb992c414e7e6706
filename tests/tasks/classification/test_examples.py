import dataclasses
from collections import Counter

import pytest

from bert.common.errors import UserError
from bert.data.labels import REGRESSION, Labels
from bert.data.text.tokenizer import Tokenizer
from bert.tasks.classification import examples as classification
from bert.tasks.classification.glue import Split, TextExample, columns
from bert.tasks.classification.settings import Settings
from bert.tasks.classification.task import TextClassification
from bert.tasks.task import DEV, TRAIN
from tests.helpers import tables

YES_NO = Labels(names=("no", "yes"))


def write(tmp_path, content, name="x.tsv"):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return str(path)


def file_of(path, *names, header=True, **named):
    """A file with these columns."""
    options = {"header": header}
    return Split(path, schema=columns(*names, **named), options=options)


def read(file, labels, needed=True):
    table = classification.read(file)
    return [e[:4] for e in classification.label(table, labels, needed)]


ABC = Labels(classification.MULTI_LABEL, ("a", "b", "c"))


@pytest.mark.parametrize(
    ("name", "rows", "labels", "expected"),
    [
        (
            "x.tsv",
            "one\tjawohl\n",
            dataclasses.replace(YES_NO, aliases=(("jawohl", "yes"),)),
            [1],
        ),
        ("x.tsv", "one\tc, a\ntwo\t\n", ABC, [[1, 0, 1], [0, 0, 0]]),
        ("x.jsonl", '{"t": "one", "l": ["b"]}\n', ABC, [[0, 1, 0]]),
        ("x.tsv", "one\t3.25\ntwo\t-4\n", Labels(REGRESSION), [3.25, -4.0]),
    ],
)
def test_labels_of_each_kind(tmp_path, name, rows, labels, expected):
    header = "t\tl\n" if name == "x.tsv" else ""
    path = write(tmp_path, header + rows, name)
    found = read(file_of(path, "t", label="l"), labels)
    assert [example[3] for example in found] == expected


def test_only_rows_of_the_language_are_kept(tmp_path):
    path = write(tmp_path, "l\tt\nzh\tone\nde\ttwo\nzh\tthree\n")
    source = file_of(path, 1, language=0)
    found = classification.read(source, "zh").rows
    assert [x[:2] for x in found] == [("0", "one"), ("1", "three")]
    with pytest.raises(UserError, match="no rows with 'xx'"):
        classification.read(source, "xx")


def discover(file, labels):
    return classification.discover(classification.read(file), labels)


def labelled(tmp_path, counts):
    """A file with this number of examples of each label."""
    rows = [f"{y} {i}\t{y}" for y, n in counts.items() for i in range(n)]
    return file_of(write(tmp_path, "t\tl\n" + "\n".join(rows)), "t", label="l")


def divided(file, labels, share=0.2, seed=7):
    """The examples for training, and those for evaluation."""
    table = classification.read(file)
    rows = classification.label(table, labels, True)
    settings = Settings(eval_fraction=share, random_seed=seed)
    splits = [Split("x.tsv", rows, name=name) for name in (TRAIN, DEV)]
    sides = (classification.hold_out(settings, x, labels) for x in splits)
    return [[example[:4] for example in side.rows] for side in sides]


def test_a_file_is_divided_with_the_same_share_of_each_label(tmp_path):
    source = labelled(tmp_path, {"no": 101, "yes": 31, "maybe": 2, "odd": 1})
    labels = Labels(names=("no", "yes", "maybe", "odd"))
    train, held_out = divided(source, labels)
    counts = Counter(example[-1] for example in held_out)
    assert counts == {0: 20, 1: 6, 2: 1}
    assert sorted(train + held_out) == sorted(read(source, labels))
    assert divided(source, labels) == [train, held_out]
    assert divided(source, labels, seed=8) != [train, held_out]


def test_copies_of_a_text_are_on_one_side(tmp_path):
    """Also copies with another label."""
    rows = [f"{i % 7}\t{'no yes'.split()[i % 2]}" for i in range(61)]
    path = write(tmp_path, "t\tl\n" + "\n".join(rows))
    splits = divided(file_of(path, "t", label="l"), YES_NO, 0.3)
    train, held_out = ({example[1] for example in split} for split in splits)
    assert len(held_out) == 2 and not train & held_out
    assert sum(map(len, splits)) == 61
    path = write(tmp_path, "t\tl\n" + "a\tno\n" * 9)
    with pytest.raises(
        UserError, match="--eval_fraction=0.2 of 1 different text"
    ):
        divided(file_of(path, "t", label="l"), YES_NO)


@pytest.mark.parametrize(
    ("groups", "firsts"),
    [
        ("------", [0, 1, 0, 3, 1, 5]),
        ("x--x--", [0, 1, 0, 0, 1, 5]),
        ("-xx---", [0, 0, 0, 3, 0, 5]),
        ("--y-x-", [0, 1, 0, 3, 1, 5]),
        ("---xyx", [0, 1, 0, 3, 1, 3]),
    ],
)
def test_copies_and_groups_stay_together(groups, firsts):
    rows = [
        TextExample("", text, "", 0, 1, group.strip("-"))
        for text, group in zip("abacbd", groups)
    ]
    assert classification.together(rows) == firsts


def test_groups_are_on_one_side(tmp_path):
    rows = [TextExample(text=str(i), group=str(i % 5)) for i in range(43)]
    settings = Settings(eval_fraction=0.4, random_seed=7)
    labels = Labels(REGRESSION)
    train, held_out = (
        {
            row.group
            for row in classification.hold_out(
                settings, Split("x.tsv", rows, name=name), labels
            ).rows
        }
        for name in (TRAIN, DEV)
    )
    assert len(held_out) == 2 and train == {*"01234"} - held_out


def test_numbers_are_divided_as_one(tmp_path):
    source = labelled(tmp_path, {str(i): 1 for i in range(29)})
    train, held_out = divided(source, Labels(REGRESSION), 0.1)
    assert (len(train), len(held_out)) == (26, 3)


NUMBERS = Labels(REGRESSION)


@pytest.mark.parametrize(
    ("value", "labels", "found"),
    [
        *((None, labels, None) for labels in (YES_NO, ABC, NUMBERS)),
        *((" ", labels, None) for labels in (YES_NO, NUMBERS)),
        # As in the test files of Hugging Face's GLUE.
        *(("-1", YES_NO, None), ("-1.0", YES_NO, None)),
        ("-1", Labels(names=("-1", "1")), 0),
        ("-1", NUMBERS, -1.0),
    ],
)
def test_rows_to_predict_may_lack_a_label(tmp_path, value, labels, found):
    rows = [{"t": "one", "l": "1"}, {"t": "two", "l": value}]
    path = tables.write(tmp_path / "x.jsonl", rows)
    source = file_of(path, "t", label="l")
    table = classification.read(source)
    table.rows.pop(0)
    (row,) = classification.label(table, labels, needed=False)
    assert row.label == found
    if value in (None, " "):
        with pytest.raises(UserError, match="a label: 1 of 1 .lines 2.; exp"):
            classification.check_labelled(table, labels.kind)
    if found is None:
        with pytest.raises(UserError, match="x.jsonl:2: (no |unknown )?.*abel"):
            classification.label(table, labels, needed=True)


def test_a_share_ignores_white_space_around_labels(tmp_path):
    rows = "".join(f"{i}\t{' ' * (i % 2)}no\n" for i in range(2))
    source = file_of(write(tmp_path, "t\tl\n" + rows), "t", label="l")
    assert [len(x) for x in divided(source, YES_NO)] == [1, 1]


@pytest.mark.parametrize(
    ("rows", "kind", "names"),
    [
        ("b\na\nb\na\n", "classes", ("a", "b")),
        ("10\n9\n10\n9\n", "classes", ("9", "10")),
        ("b,a\n\nc\n", "multi_label", ("a", "b", "c")),
    ],
)
def test_labels_are_found_in_a_file(tmp_path, rows, kind, names):
    path = write(tmp_path, "l\n" + rows)
    source = file_of(path, 0, label=0)
    assert discover(source, Labels(kind)) == names


def test_booleans_of_json_are_labels(tmp_path):
    rows = '{"l": true, "t": 1}\n{"l": false, "t": 2}\n'
    path = write(tmp_path, rows, "x.jsonl")
    found = discover(file_of(path, "t", label="l"), Labels())
    assert found == ("false", "true")


def test_rows_without_any_label_are_reported(tmp_path):
    path = write(tmp_path, "one\t\ntwo\t\n")
    source = file_of(path, 0, label=1, header=False)
    with pytest.raises(UserError, match="no label; expected at least two"):
        discover(source, Labels("multi_label"))


@pytest.mark.parametrize(
    ("rows", "source", "labels", "found"),
    [
        ("t\tl\none\tmaybe\n", {}, YES_NO, "x.tsv:2: unknown label 'maybe'"),
        ("t\tl\n", {"header": False}, YES_NO, "it looks like a header"),
        ("t\tl\none\t\n", {}, YES_NO, "x.tsv:2: no label"),
        (
            "t\tl\none\tnan\n",
            {},
            Labels(classification.REGRESSION),
            "x.tsv:2: label 'nan'; expected a number",
        ),
        (
            "t\tl\none\t['no', 'yes']\n",
            {},
            Labels(classification.MULTI_LABEL, ("no", "yes")),
            "x.tsv:2: a list as text, \"['no', 'yes']\"; expected labels",
        ),
    ],
)
def test_invalid_rows_are_reported(tmp_path, rows, source, labels, found):
    path = write(tmp_path, rows)
    with pytest.raises(UserError) as error:
        read(file_of(path, 0, label=1, **source), labels)
    assert found in str(error.value)


@pytest.mark.parametrize(
    ("rows", "header", "found"),
    [
        ("l\nsame\nsame\n", True, "1 label: 'same'"),
        ("Quality\n1\n1\n0\n0\n", False, "if line 1 is a header, pass --hea"),
        (
            "l\n" + "".join(f"text {i}\n" for i in range(1009)),
            True,
            "1,009 different labels",
        ),
        (
            "".join(f"text {i}\n" for i in range(21)),
            False,
            "21 different labels, 21 of them only once",
        ),
    ],
)
def test_columns_without_labels_are_rejected(tmp_path, rows, header, found):
    path = write(tmp_path, rows)
    source = file_of(path, 0, label=0, header=header)
    with pytest.raises(UserError, match=found):
        discover(source, Labels())


def test_a_header_that_is_data_is_rejected(tmp_path):
    labelled = file_of(write(tmp_path, "one\tyes\n" * 2), 0, label=1)
    with pytest.raises(UserError, match="'yes' in the column of the label"):
        read(labelled, YES_NO)
    numbered = file_of(write(tmp_path, "0\tone\n" * 2), 1, id=0)
    with pytest.raises(UserError, match="'0' in the column of the id"):
        read(numbered, YES_NO)
    good = file_of(write(tmp_path, "id\tsentence\n0\tone\n"), 1, id=0)
    read(good, YES_NO, needed=False)


def test_examples_are_truncated_as_in_the_original():
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens = special + [str(i) for i in range(5, 25)]  # the id of 5 is 5
    tokenizer = Tokenizer("vocab.txt", True, tokens=tokens)
    task = TextClassification(tokenizer, YES_NO, 7, has_pairs=True)
    encoded = task.encode(
        [
            {"text": "11 12 13 14 15", "text_b": "21 22 23 24"},
            {"text": "11 12 13 14 15 16 17 18", "text_b": ""},
            {"text": "11 12 13 14 15", "text_b": ""},
        ]
    )
    assert [x[:3] for x in encoded] == [
        ([([2, 11, 12, 3, 21, 22, 3], [0, 0, 0, 0, 1, 1, 1])], 12, True),
        ([([2, 11, 12, 13, 14, 15, 3], [0] * 7)], 10, True),
        ([([2, 11, 12, 13, 14, 15, 3], [0] * 7)], 7, False),
    ]
