"""Multiple choice: SWAG's files and JSON lines to features."""

import dataclasses
import types

import numpy as np
import pytest

from bert.common.errors import UserError
from bert.tasks.swag import examples, inputs
from bert.tasks.swag.examples import ChoiceExample
from bert.tasks.swag.settings import Settings
from bert.tasks.swag.task import MultipleChoice
from tests.helpers import run_folders, tables

HEADER = (
    ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,"
    "ending0,ending1,ending2,ending3,label"
).split(",")
ROW = [
    "0",
    "lsmdc0001_00_AMERICAN_BEAUTY-45",
    "3415",
    'He said "no, thanks". The man',
    'He said "no, thanks".',
    "The man",
    "gold",
    "walks away, slowly.",
    "eats a door.",
    "is\nblue.",
    "flies over him.",
    "2",
]


def changed(**fields):
    return dict(zip(HEADER, ROW)) | fields


@pytest.fixture
def read(tmp_path):
    """Writes rows as a table, and reads its examples."""

    def read(name, *rows, labelled=True):
        path = tables.write(tmp_path / name, rows)
        return examples.read(path, labelled).rows

    return read


@pytest.mark.parametrize("name", ["x.csv", "x.jsonl", "x.parquet"])
def test_swags_columns_are_read_in_every_format(read, name):
    kind = " {} ".format if name == "x.csv" else int
    rows = changed(label=kind(2)), changed(sent2="", label=kind(0))
    first, second = read(name, *rows)
    assert first.context == 'He said "no, thanks".'
    assert first.choices == [
        "The man walks away, slowly.",
        "The man eats a door.",
        "The man is\nblue.",
        "The man flies over him.",
    ]
    assert second.choices[1] == "eats a door."
    assert (first.label, second.label) == (2, 0)
    # In CSV, line 1 has the names, and a field has two lines.
    assert (first.line, second.line) == ((1, 2) if kind is int else (2, 4))


@pytest.mark.parametrize("name", ["x.jsonl", "x.parquet"])
def test_rows_may_have_any_number_of_choices(read, name):
    lines = [
        {"context": "a", "choices": ["b", "c", "d"], "label": 2},
        {"context": "", "choices": ["e", "f"], "label": 0},
    ]
    assert read(name, *lines) == [
        ChoiceExample("a", ["b", "c", "d"], 2, 1),
        ChoiceExample("", ["e", "f"], 0, 2),
    ]
    unlabelled = read(name, *lines, labelled=False)
    assert [x.label for x in unlabelled] == [None, None]


LABEL = "expected the index of the correct choice, 0 to "
GOOD = {"context": "a", "choices": ["b", "c"], "label": 1}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (changed(label="4"), f"2: label 4; {LABEL}3"),
        (changed(label="-1"), f"2: label '-1'; {LABEL}3"),
        (changed(label="gold"), f"2: label 'gold'; {LABEL}3"),
        (changed(ending1=" "), "2: choice 1 is empty; expected a text"),
        ({**GOOD, "label": 2}, f"2: label 2; {LABEL}1"),
        ({**GOOD, "label": True}, f"2: label True; {LABEL}1"),
        ({**GOOD, "label": "1"}, f"2: label '1'; {LABEL}1"),
        ({**GOOD, "choices": ["b"]}, "2: 1 choice; expected two or more"),
        ({**GOOD, "choices": ["b", ""]}, "2: choice 1 is empty"),
        ({**GOOD, "choices": ["b", 3]}, "2: choices ['b', 3]; expected a list"),
        ({**GOOD, "choices": "b"}, "2: choices 'b'; expected a list of stri"),
        ({"context": "a", "label": 1}, "2: no column 'choices'"),
    ],
)
def test_wrong_rows_name_their_line(read, row, message):
    rows = [row] if "sent1" in row else [GOOD, row]
    with pytest.raises(UserError) as caught:
        read("x.csv" if "sent1" in row else "x.jsonl", *rows)
    assert f":{message}" in str(caught.value)


@pytest.mark.parametrize(
    ("names", "labelled", "message"),
    [
        (HEADER[:-1], True, "no column 'label'"),
        (HEADER[:-1], False, None),
        (["id", "sent1", "sent2", "distractor-0"], True, "not train_full"),
        (["a line"], True, "names in the header are a line"),
    ],
)
def test_columns_of_a_csv(read, names, labelled, message):
    row = {name: changed().get(name, "x") for name in names}
    if message is None:
        assert [x.label for x in read("x.csv", row, labelled=False)] == [None]
        return
    with pytest.raises(UserError, match=message):
        read("x.csv", row, labelled=labelled)


CLS, SEP, UNK = 2, 3, 4


def choice_task(max_length, sequences=2):
    """A task whose tokens are words, each with its length plus 10 as id."""
    tokenizer = types.SimpleNamespace(
        vocab={"[CLS]": CLS, "[SEP]": SEP, "[UNK]": UNK},
        ids_of=lambda texts: [
            [10 + len(word) for word in text.split() if word != "\x7f"]
            for text in texts
        ],
    )
    return MultipleChoice(tokenizer, max_length, sequences)


def test_examples_are_padded_with_choices_of_weight_0():
    task, told = choice_task(7, 3), []
    rows = [
        ChoiceExample("a bb", ["ccc d", "e"], 1, 1),
        ChoiceExample("a bb ccc", ["d e", "f"], 0, 1),
    ]
    first, second = task.records(rows, told.append)
    assert first == {
        "input_ids": [
            [CLS, 11, 12, SEP, 13, 11, SEP],
            [CLS, 11, 12, SEP, 11, SEP],
            [CLS, SEP],
        ],
        "segment_ids": [
            [0, 0, 0, 0, 1, 1, 1],
            [0, 0, 0, 0, 1, 1],
            [0, 0],
        ],
        "label_ids": [1],
        "choice_weights": [1.0, 1.0, 0.0],
    }
    assert second["input_ids"][0] == [CLS, 11, 12, SEP, 11, 11, SEP]
    assert second["label_ids"] == [0]
    assert [x.is_truncated for x in told] == [False, True]
    for context, is_long in (("a bb ccc", False), ("a bb ccc d", True)):
        example = {"context": context, "choices": ["e", " "]}
        (encoded,) = task.encode([example])
        assert encoded.is_truncated == is_long


def test_rows_may_have_different_numbers_of_choices(tmp_path):
    """A record has room for all; chance is a mean of the rows."""
    path = tmp_path / "x.jsonl"
    rows = [
        {"context": "a", "choices": ["b"] * n, "label": label}
        for n, label in ((2, 1), (4, 0), (2, 1))
    ]
    tables.write(path, rows)
    settings = run_folders.parse(Settings, "--do_train", train_file=path)
    task, files = inputs.read(run_folders.opened(settings))
    assert task.sequences == 4
    ((file,), *_) = files.values()
    found = task.baselines(file.rows[1:], [], file.rows, settings)
    assert found == {
        "accuracy/chance": (1 / 4 + 1 / 2) / 2,
        "accuracy/majority": 0.5,
        "loss/chance": pytest.approx((np.log(4) + np.log(2)) / 2),
    }
    rows = [file.rows[1], dataclasses.replace(file.rows[1], label=0)]
    assert task.baselines(rows, [], file.rows, None)["accuracy/majority"] == 0
