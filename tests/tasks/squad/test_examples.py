"""SQuAD files: valid and invalid ones."""

import gzip
import json

import numpy as np
import pytest

from bert.common.errors import UserError
from bert.tasks.squad import examples as squad

CONTEXT = "It was made in 1895."


def question(key="q1", **changed):
    qa = {
        "id": key,
        "question": "When was it made?",
        "answers": [{"text": "1895", "answer_start": 15}],
        **changed,
    }
    return {name: value for name, value in qa.items() if value is not None}


def answer(**changed):
    record = {"text": "1895", "answer_start": 15, **changed}
    return question(answers=[{k: v for k, v in record.items() if v != "none"}])


def record(key="q1", **changed):
    """A line as `datasets` writes it."""
    answers = {"text": ["1895"], "answer_start": [15]}
    changed = {"context": CONTEXT, "answers": answers, **changed}
    return {"title": "Films", **question(key, **changed)}


def content(*qas, context=CONTEXT):
    paragraph = {"context": context, "qas": list(qas)}
    return {
        "version": "1.1",
        "data": [{"title": "Films", "paragraphs": [paragraph]}],
    }


@pytest.fixture
def write(tmp_path):
    def write(what, name="train.json"):
        path = tmp_path / name
        raw = what if isinstance(what, bytes) else json.dumps(what).encode()
        path.write_bytes(raw)
        return str(path)

    return write


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_reads_plain_and_compressed_files_by_their_content(write, pack):
    raw = "\ufeff".encode() + json.dumps(content(question())).encode()
    for name in ("train.json", "train.json.gz"):
        dataset = squad.read(write(pack(raw), name), squad.SPANS)
        assert dataset.rows == [
            squad.SquadExample(
                "q1",
                "When was it made?",
                CONTEXT,
                (squad.Answer("1895", 15),),
                title="Films",
            )
        ]
        assert not dataset.has_impossible


def test_numbers_are_ids(write):
    path = write(content(question(7), question(-3), question("x")))
    assert [x.id for x in squad.read(path).rows] == ["7", "-3", "x"]


def as_lines(records):
    return "".join(
        f"{json.dumps(x, ensure_ascii=False)}\n" for x in records
    ).encode()


def as_data(records):
    return {"version": "0.1.0", "data": records}


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("form", [as_lines, list, as_data])
def test_files_of_datasets_equal_those_of_squad(write, form, count):
    """JSON lines, as `to_json` writes them, and a list of records."""
    answers = {"text": ["1895", "in 1895"], "answer_start": [15, 12]}
    records = [
        record(7, answers=answers),
        record("q2", question="a\u2028b", answers={"text": ["It"]}),
    ][:count]
    if count == 2:
        records[1]["answers"]["answer_start"] = [0]
    same = [{"text": "1895", "answer_start": 15}]
    same.append({"text": "in 1895", "answer_start": 12})
    qas = [
        question("7", answers=same),
        question(
            "q2",
            question="a\u2028b",
            answers=[{"text": "It", "answer_start": 0}],
        ),
    ][:count]
    nested = write(content(*qas), "nested.json")
    flat = write(form(records), "flat.json")
    for needed in (squad.NOTHING, squad.TEXTS, squad.SPANS):
        expected = squad.read(nested, needed)
        found = squad.read(flat, needed)
        assert found.rows == expected.rows
        assert found.has_impossible == expected.has_impossible is False


def test_lists_without_an_entry_are_no_answer(write):
    """As `datasets` writes SQuAD 2.0, which has no is_impossible there."""
    nothing = {"text": [], "answer_start": []}
    path = write([record("q1"), record("q2", answers=nothing)])
    for needed in (squad.TEXTS, squad.SPANS):
        dataset = squad.read(path, needed)
        assert [x.impossible for x in dataset.rows] == [False, True]
        assert dataset.has_impossible
        squad.check_version(dataset, True)
        with pytest.raises(UserError, match="qa q2 has no answer.*--version_2"):
            squad.check_version(dataset, False)
    assert [x.impossible for x in squad.read(path).rows] == [False, False]


def test_questions_alone_need_no_labels(write):
    path = write(content(question(answers=None), question("q2", answers=[])))
    examples = squad.read(path).rows
    assert [x.id for x in examples] == ["q1", "q2"]
    assert [x.answers for x in examples] == [(), ()]
    with pytest.raises(UserError, match="qa q1: answers is missing"):
        squad.read(path, squad.TEXTS)


def test_texts_need_no_start_and_may_be_missing(write):
    answers = [{"text": "1895"}, {"text": "", "answer_start": -7}]
    path = write(
        content(
            question(answers=answers, is_impossible=False),
            question("q2", answers=[], is_impossible=True),
        )
    )
    dataset = squad.read(path, squad.TEXTS)
    assert [x.text for x in dataset.rows[0].answers] == ["1895", ""]
    assert dataset.rows[1].impossible and dataset.has_impossible


# Broken files, and the expected messages.
BROKEN = {
    "no record": ([], "train.json: no question"),
    "a record without context": (
        [record(), question("q2")],
        "train.json: qa q2: context is missing",
    ),
    "second line no JSON": (
        json.dumps(record()).encode() + b'\n\n{"id": }\n',
        "train.json:3: JSON is malformed",
    ),
    "as many texts as starts": (
        [record(answers={"text": ["1895"], "answer_start": [15, 7]})],
        "train.json: qa q1: answer_start has 2 entries; expected 1, as text",
    ),
    "a number and its text as ids": (
        content(question(7), question("7")),
        "train.json: qa 7: duplicate id",
    ),
    "empty": (content(), "train.json: no question"),
    "same id": (
        content(question(), question()),
        "train.json: qa q1: duplicate id",
    ),
    "no answer": (
        content(question(answers=[])),
        "train.json: qa q1: no answer; expected one to train on",
    ),
    "empty answer": (
        content(answer(text=" ")),
        "train.json: qa q1: answer.text is empty",
    ),
    "behind the text": (
        content(answer(answer_start=20)),
        "train.json: qa q1: answer.answer_start 20 is outside of the context; "
        "expected at least 0 and less than 20",
    ),
    "answer to the impossible": (
        content(question(is_impossible=True)),
        "train.json: qa q1: is_impossible is true, but it has 1 answers",
    ),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_errors_name_file_and_question(write, broken):
    what, message = BROKEN[broken]
    path = write(what)
    with pytest.raises(UserError) as error:
        squad.read(path, squad.SPANS)
    assert str(error.value).replace(path, "train.json").startswith(message)


@pytest.mark.parametrize(
    ("version_2", "qa", "message"),
    [
        (True, question(), "qa q1: no is_impossible.*omit --version_2"),
        (
            False,
            question(is_impossible=True, answers=[]),
            "qa q1 has no answer.*pass --version_2",
        ),
    ],
)
def test_a_file_of_the_other_version_is_reported(write, version_2, qa, message):
    dataset = squad.read(write(content(qa)), squad.SPANS)
    with pytest.raises(UserError, match=message):
        squad.check_version(dataset, version_2)
    squad.check_version(dataset, not version_2)


def test_words_are_counted_at_the_originals_white_space():
    #       "\n  a b  \u00a0 c \u202f  d"
    numbers = squad.word_numbers("\na b\u00a0c\u202fd ")
    np.testing.assert_array_equal(numbers, [-1, 0, 0, 1, 1, 1, 1, 2, 2])
    assert len(squad.word_numbers("")) == 0
