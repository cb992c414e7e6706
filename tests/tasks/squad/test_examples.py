"""SQuAD files: valid and invalid ones."""

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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


TITLE, KEYS = "Films", st.one_of(st.integers(-9, 9), st.text(min_size=1))
DRAWN = st.lists(
    st.tuples(
        KEYS,
        st.text(),
        st.text(min_size=1).filter(str.strip),
        st.lists(st.integers(0, 40), max_size=3),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda x: str(x[0]),
)


def forms(rows, is_version_2):
    """The questions as SQuAD's file, as lines, as a list, and below data."""
    articles, records = [], []
    for key, text, context, answers in rows:
        qa = {"id": key, "question": text}
        pairs = [{"text": x, "answer_start": y} for x, y in answers]
        nested = {**qa, "answers": pairs}
        if is_version_2:
            nested["is_impossible"] = not answers
        paragraph = {"context": context, "qas": [nested]}
        articles.append({"title": TITLE, "paragraphs": [paragraph]})
        lists = {"text": [x for x, _ in answers]}
        lists["answer_start"] = [y for _, y in answers]
        more = {"title": TITLE, "context": context, "answers": lists}
        records.append(qa | more)
    lines = [json.dumps(x, ensure_ascii=False) for x in records]
    return [
        json.dumps({"version": "x", "data": articles}),
        "\n".join(lines) + "\n",
        json.dumps(records),
        json.dumps({"version": "0.1.0", "data": records}),
    ]


@given(DRAWN, st.booleans(), st.sampled_from([bytes, gzip.compress]))
def test_every_form_has_the_same_questions(
    tmp_path_factory, drawn, is_version_2, pack
):
    """With and without answers, a mark at the start, and compression."""
    rows, path = [], tmp_path_factory.mktemp("squad") / "train.json"
    for key, text, context, starts in drawn:
        spans = [(x % len(context), context) for x in starts]
        answers = [(y[x:], x) for x, y in spans if y[x:].strip()]
        rows.append((key, text, context, answers or [(context, 0)]))
    if is_version_2:
        rows[-1] = (*rows[-1][:3], [])
    for content in forms(rows, is_version_2):
        path.write_bytes(pack(f"\ufeff{content}".encode()))
        for needed in (squad.NOTHING, squad.TEXTS, squad.SPANS):
            is_read = needed != squad.NOTHING
            expected = [
                squad.SquadExample(
                    str(key),
                    text,
                    context,
                    tuple(squad.Answer(*x) for x in answers if is_read),
                    not answers and (is_read or '"is_impossible"' in content),
                    TITLE,
                )
                for key, text, context, answers in rows
            ]
            found = squad.read(str(path), needed)
            assert found.rows == expected
            if is_read:
                assert found.has_impossible == is_version_2
                squad.check_version(found, is_version_2)


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
