"""Multiple choice: SWAG's files and JSON lines to features."""

import csv
import json
import types

import numpy as np
import pytest

from bert.common.errors import UserError
from bert.tasks.swag import examples
from bert.tasks.swag.examples import ChoiceExample
from bert.tasks.swag.task import MultipleChoice
from tests.helpers import tables

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


@pytest.fixture
def write(tmp_path):
    def write(content, name="file.csv"):
        path = tmp_path / name
        if name.endswith(".csv"):
            with open(path, "w", newline="") as file:
                csv.writer(file).writerows(content)
        else:
            lines = [
                x if isinstance(x, str) else json.dumps(x) for x in content
            ]
            path.write_text("".join(f"{line}\n" for line in lines))
        return str(path)

    return write


def changed(**fields):
    return [fields.get(n, v) for n, v in zip(HEADER, ROW)]


def test_csv_as_swag_has_it(write):
    path = write([HEADER, ROW, changed(sent2="", label="0")])
    first, second = examples.read(path, labelled=True).rows
    assert first == ChoiceExample(
        'He said "no, thanks".',
        [
            "The man walks away, slowly.",
            "The man eats a door.",
            "The man is\nblue.",
            "The man flies over him.",
        ],
        2,
        2,
    )
    assert second.choices[1] == "eats a door."
    assert (second.label, second.line) == (0, 4)  # a field has two lines


def test_csv_without_labels(write):
    path = write([HEADER[:-1], ROW[:-1]])
    (example,) = examples.read(path, labelled=False).rows
    assert example.label is None
    with pytest.raises(UserError, match="no column 'label'"):
        examples.read(path, labelled=True)


@pytest.mark.parametrize("name", ["x.jsonl", "x.parquet"])
def test_rows_with_any_number_of_choices(tmp_path, name):
    rows = [
        {"context": "a", "choices": ["b", "c", "d"], "label": 2, "more": None},
        {"context": "", "choices": ["e", "f"], "label": 0, "more": None},
    ]
    path = tables.write(tmp_path / name, rows)
    assert examples.read(path, labelled=True).rows == [
        ChoiceExample("a", ["b", "c", "d"], 2, 1),
        ChoiceExample("", ["e", "f"], 0, 2),
    ]
    unlabelled = examples.read(path, labelled=False)
    assert [x.label for x in unlabelled.rows] == [None, None]


LABEL = "expected the index of the correct choice, 0 to "


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (changed(label="4"), f"2: label 4; {LABEL}3"),
        (changed(label="-1"), f"2: label '-1'; {LABEL}3"),
        (changed(label=""), f"2: label ''; {LABEL}3"),
        (changed(label="gold"), f"2: label 'gold'; {LABEL}3"),
        (changed(ending1=" "), "2: choice 1 is empty; expected a text"),
    ],
)
def test_wrong_rows_of_csv(write, row, message):
    path = write([HEADER, row])
    with pytest.raises(UserError) as caught:
        examples.read(path, labelled=True)
    assert str(caught.value).startswith(f"{path}:{message}")


GOOD = {"context": "a", "choices": ["b", "c"], "label": 1}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({**GOOD, "label": 2}, f"2: label 2; {LABEL}1"),
        ({**GOOD, "label": True}, f"2: label True; {LABEL}1"),
        ({**GOOD, "label": "1"}, f"2: label '1'; {LABEL}1"),
        ({**GOOD, "choices": ["b"]}, "2: 1 choice; expected two or more"),
        ({**GOOD, "choices": ["b", ""]}, "2: choice 1 is empty"),
        ({**GOOD, "choices": ["b", 3]}, "2: choices ['b', 3]; expected a list"),
        (
            {**GOOD, "choices": "b"},
            "2: choices 'b'; expected a list of strings",
        ),
        ({**GOOD, "context": None}, "2: the context is null; expected a st"),
        ({"context": "a", "label": 1}, "2: no column 'choices'"),
    ],
)
def test_wrong_lines_of_json(write, line, message):
    path = write([GOOD, line], "x.jsonl")
    with pytest.raises(UserError) as caught:
        examples.read(path, labelled=True)
    assert str(caught.value).startswith(f"{path}:{message}")


def test_files_that_are_something_else(write):
    full = [["id", "sent1", "sent2", "gold-ending", "distractor-0"], ["a"] * 5]
    with pytest.raises(UserError, match="0 columns ending0, .* not train_full"):
        examples.read(write(full), labelled=True)
    path = write(["a line"], "file.txt")
    with pytest.raises(UserError, match="names in the header are a line"):
        examples.read(path, labelled=True)


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


def test_a_choice_of_dropped_characters_is_unknown():
    example = ChoiceExample("a", ["\x7f", "b"], 0, 5)
    (row,) = choice_task(7).records([example])
    assert row["input_ids"] == [
        [CLS, 11, SEP, UNK, SEP],
        [CLS, 11, SEP, 11, SEP],
    ]


def test_a_blank_choice_has_the_probability_0():
    task = choice_task(7)
    texts = {"context": "a", "choices": ["b", " ", "c"]}
    blank = {"context": "a", "choices": [" ", ""]}
    encoded = task.encode([texts, blank])
    scores = [np.array([x], np.float32) for x in (1.0, 5.0, 1.0)]
    results = [*map(task.combine, encoded, [scores, scores[:2]])]
    found, uniform = task.decode(encoded, results)
    assert found == {"best": 0, "probabilities": [0.5, 0.0, 0.5]}
    assert uniform == {"best": 0, "probabilities": [0.5, 0.5]}
