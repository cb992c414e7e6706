"""Words and their characters, against regular expressions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert.data.text import tokenization, words
from bert.data.text import unicode_tables as tables


@pytest.mark.parametrize(
    ("text", "by_words", "expected"),
    [
        ('In "New  York", he said.', False, 'In " New York " , he said .'),
        ("a\ud800. b", False, "a\ud800 . b"),
        (
            "\ufeff(Ro\u200bme.\u200b \u2060 \u200f\u4eac\u200d",
            False,
            "( Ro\u200bme . \u4eac",
        ),
        ("Rome\u200b", True, "Rome\u200b"),
        (
            "(a,b) \u5317\u4eac\u00a0x\u2028y  z.\n",
            True,
            "(a,b) \u5317\u4eac\u00a0x\u2028y z.",
        ),
        ("\t", True, ""),
        ("\u0085 a", True, "\u0085 a"),
    ],
)
def test_punctuation_is_split_off_unless_words_are_given(
    text, by_words, expected
):
    spans = words.split(text, by_words)
    assert " ".join(text[a:b] for a, b in spans) == expected


def by_expressions(text):
    """Splits by regular expressions."""
    kinds = tables.entries(False, False) & tables.KIND
    marks = ""
    for character in text:
        kind = kinds[ord(character)]
        if kind == tables.SPACE:
            marks += " "
        elif kind == tables.ALONE:
            marks += "p" if tokenization.is_punctuation(character) else "a"
        elif character == "\u200b":
            marks += "z"
        else:
            marks += "i"
    spans = []
    for run in re.finditer("a|[ipz]+", marks):
        ends = re.fullmatch("([pz]*|a)(.*?)([pz]*)", run.group()).span(2)
        first, last = (run.start() + x for x in ends)
        spans += [(i, i + 1) for i in range(run.start(), first)]
        if last > first:
            spans.append((first, last))
        spans += [(i, i + 1) for i in range(last, run.end())]
    return [x for x in spans if text[slice(*x)] != "\u200b"]


LETTERS = "ab\u00e9\u0301\u200b\U0001f600\u5317\u4eac.,!?'-()\"  \u00a0\t\n"


@given(st.text(LETTERS))
def test_texts_are_split_as_by_expressions(text):
    assert words.split(text) == by_expressions(text)
