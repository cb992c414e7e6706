"""Windows of questions and spans of answers."""

import dataclasses
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert.data import sequences
from bert.data.text import vocabulary
from bert.data.text.tokenizer import Tokenizer
from bert.tasks.squad import question_windows
from bert.tasks.squad.examples import Answer, SquadExample
from bert.tasks.squad.settings import Settings

SPECIAL = list(vocabulary.SPECIAL_TOKENS)
WORDS = "it was made in 18 ##95 when ? . ( ) - the old cafe japan ##ese".split()
TOKENS = SPECIAL + WORDS
LETTERS = [chr(c) for c in range(33, 127)] + list("éßΣσςä中ﬁ")
NUMBER = {token: i for i, token in enumerate(TOKENS)}


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer("vocab.txt", tokens=TOKENS)


@pytest.fixture(scope="module")
def letters():
    """A vocabulary of all letters and some pairs of letters."""
    tokens = dict.fromkeys([*LETTERS, *(f"##{x}" for x in LETTERS)])
    tokens = SPECIAL + list(tokens) + ["ab", "##cd"]
    return Tokenizer("vocab.txt", tokens=tokens)


def sizes(max_seq_length, doc_stride, max_query_length):
    """Settings of these windows."""
    return dataclasses.replace(
        Settings(),
        max_seq_length=max_seq_length,
        doc_stride=doc_stride,
        max_query_length=max_query_length,
    )


def ids(text):
    return [NUMBER[token] for token in text.split()]


@settings(deadline=None)
@given(st.integers(0, 60), st.integers(1, 20), st.integers(1, 30))
def test_windows_cover_all_tokens_and_each_has_one_owner(count, size, stride):
    spans = sequences.cut(count, size, stride)
    covered = np.zeros(count, int)
    for start, length in spans:
        assert 0 < length <= size
        covered[start : start + length] += 1
    assert (covered > 0).all()
    owners = question_windows.max_context(spans, count)
    for position, owner in enumerate(owners):
        scores = [
            min(position - start, start + length - 1 - position) + 0.01 * length
            if start <= position < start + length
            else -1.0
            for start, length in spans
        ]
        assert owner == scores.index(max(scores))


def joined(text):
    return ids(f"[CLS] when was it made ? [SEP] {text} [SEP]")


CONTEXT = "It was MADE in (1895). The Café-Japanese."


def test_training_records_as_drawn(tokenizer):
    example = SquadExample(
        "q", "When was it made?", CONTEXT, (Answer("1895", 16),)
    )
    settings_ = sizes(18, 4, 11)
    maker = question_windows.WindowMaker(tokenizer, settings_)
    records = list(maker.training_records([example]))
    drawn = [
        ("it was made in ( 18 ##95 ) . the", (12, 13)),
        ("( 18 ##95 ) . the cafe - japan ##ese", (8, 9)),
        (". the cafe - japan ##ese .", (0, 0)),
    ]
    for made, (text, span) in zip(records, drawn, strict=True):
        assert made["input_ids"].tolist() == joined(text)
        count = len(text.split())
        assert made["segment_ids"].tolist() == [0] * 7 + [1] * (count + 1)
        assert (*made["start_positions"], *made["end_positions"]) == span
    assert not maker.lost


def test_prediction_windows_have_character_offsets(tokenizer):
    context = "\n It was caf\u00e9"
    example = SquadExample("q", "When was it made?", context)
    empty = SquadExample("e", "When was it made?", " \n")
    maker = question_windows.WindowMaker(tokenizer, sizes(12, 2, 5))
    nothing, (record,) = maker.prediction_windows([empty, example])
    assert nothing == []
    made = {name: list(map(int, x)) for name, x in record.items()}
    assert made == {
        "input_ids": joined("it was cafe"),
        "segment_ids": [0] * 7 + [1] * 4,
        "piece_starts": [0] * 7 + [2, 5, 9, 0],
        "piece_limits": [0] * 7 + [4, 8, 13, 0],
        "token_is_max_context": [0] * 7 + [1, 1, 1, 0],
    }


def test_a_long_question_is_cut_and_examples_are_shuffled(tokenizer):
    examples = [
        SquadExample(str(i), "it was made", "when " * i, (), True)
        for i in range(9)
    ]
    maker = question_windows.WindowMaker(tokenizer, sizes(17, 4, 2))
    records = list(maker.training_records(examples))
    order = list(range(9))
    random.Random(12345).shuffle(order)
    lengths = [len(x["input_ids"]) - 5 for x in records]
    assert lengths == [i for i in order if i]  # none of the empty one
    assert records[0]["input_ids"].tolist()[:4] == ids("[CLS] it was [SEP]")


def find(tokenizer, context, text, start):
    (tokens,) = tokenizer.with_offsets([context])
    answer = tokenizer.graph.tokenize([text]).flat_values.numpy().tolist()
    span = question_windows.find_span(tokens, context, text, start, answer)
    return span and question_windows.detokenize(tokens, context, span)


def test_spans_are_improved(tokenizer):
    context = "The leader was made (1895-95)."
    assert find(tokenizer, context, "1895", 21) == "1895"
    assert find(tokenizer, "made (1895", "1895", 6) == "1895"
    assert find(tokenizer, context, "leader was", 4) == "leader was"
    # White space around an answer is no part of it.
    assert find(tokenizer, context, " was ", 10) == "was"
    # A part of a token: all words around it.
    assert find(tokenizer, context, "eader", 5) == "leader"
    assert find(tokenizer, context, "s made (1", 13) == "was made (1895-95)."
    # If there are two, the labelled one.
    assert find(tokenizer, "(It-it)", "it", 4) == "it"
    assert find(tokenizer, "(It-it)", "It", 1) == "It"


def test_absent_answers_are_not_found(tokenizer):
    assert find(tokenizer, "it was made", "japan", 3) is None
    assert find(tokenizer, "it was made", "made", 0) is None
    assert find(tokenizer, "it \u200b made", "\u200b", 3) is None
    assert find(tokenizer, "   ", "it", 1) is None


def test_lost_answers_are_listed(tokenizer):
    def example(key, context, text, start):
        return SquadExample(key, "when", context, (Answer(text, start),))

    examples = [
        example("a", "it was made", "japan", 3),
        example("b", "the Japanese", "apan", 5),
        example("c", "it was made in japan", "it was made in japan", 0),
        example("d", "it was made", "was", 3),
    ]
    maker = question_windows.WindowMaker(tokenizer, sizes(8, 2, 1))
    records = list(maker.training_records(examples))
    assert maker.lost == {
        question_windows.ABSENT: ["a"],
        question_windows.WIDER: ["b"],
        question_windows.UNCOVERED: ["c"],
    }
    # Only the absent answer is skipped.
    assert len(records) == 4


TEXT = st.text(
    st.sampled_from(LETTERS + list("ABab  \n\u00a0\u202f\u0301\u200b\u3000"))
    | st.characters(exclude_categories=["Cs"]),
    min_size=1,
    max_size=40,
)


@settings(deadline=None, max_examples=150)
@given(TEXT, st.data())
def test_labels_detokenize_to_the_answer_or_are_lost(letters, context, data):
    start = data.draw(st.integers(0, len(context) - 1))
    limit = data.draw(st.integers(start + 1, len(context)))
    text = context[start:limit]
    if not text.strip():
        return
    length = data.draw(st.integers(5, 30))
    stride = data.draw(st.integers(1, 30))
    maker = question_windows.WindowMaker(letters, sizes(length, stride, 1))
    example = SquadExample("q", "a", context, (Answer(text, start),))
    records = list(maker.training_records([example]))
    (tokens,) = letters.with_offsets([context])
    size = length - 4
    labels = [(x["start_positions"][0], x["end_positions"][0]) for x in records]
    found, starts = set(), set()
    for window, (first, last) in zip(
        sequences.cut(len(tokens.ids), size, stride), labels
    ):
        if last:
            span = question_windows.Span(
                first - 3 + window.start, last - 3 + window.start
            )
            found.add(question_windows.detokenize(tokens, context, span))
            starts.add(int(tokens.starts[span.start]))
    reasons = set(maker.lost)
    if not reasons:
        assert {" ".join(x.split()) for x in found} == {" ".join(text.split())}
        assert starts == {limit - len(text.lstrip())}
    else:
        assert found == set() or reasons == {question_windows.WIDER}
