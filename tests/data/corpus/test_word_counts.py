"""Counts of words: the tokenizer's, in bounded memory, on any processes."""

import multiprocessing
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert.common.errors import UserError
from bert.data.corpus import word_counts
from bert.data.text import tokenization
from bert.data.text.casing import Casing

TEXTS = st.text(max_size=23) | st.text(st.characters(max_codepoint=127))


@settings(deadline=None, max_examples=100, derandomize=True)
@given(st.lists(TEXTS, max_size=5), st.booleans())
def test_counting_equals_splitting_whole_lines(texts, lower):
    split = tokenization.BasicTokenizer(do_lower_case=lower).tokenize
    expected = Counter(word for text in texts for word in split(text))
    count = word_counts.counter(Casing(lower))
    assert count(" ".join(texts)) == expected


def filled(size, *counts):
    table = word_counts.WordTable(size)
    for chunk in counts:
        table.add(Counter(chunk))
    return table


def test_a_full_table_keeps_the_most_frequent_up_to_half_its_size():
    # The size of a word is 4 + its length: 5 + 5 + 9 + 5 = 24 exceeds 23, and
    # the first two fit in 11.
    table = filled(23, {"a": 2, "b": 7, "ccccc": 1}, {"c": 3, "b": 1})
    assert table.words == {"b": 8, "c": 3}
    assert table.dropped_below == 3  # "a" had been seen twice
    table.add(Counter({"a": 1}))
    assert table.words == {"b": 8, "c": 3, "a": 1}


def test_equally_frequent_words_are_kept_at_random():
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = dict.fromkeys(letters, 1)
    table = filled(26 * 5 - 1, words)
    assert len(table.words) == 12
    assert table.dropped_below == 2
    assert {"a", "b"} - set(table.words)
    assert set(letters[13:]) & set(table.words)
    backwards = dict.fromkeys(reversed(letters), 1)
    assert filled(26 * 5 - 1, backwards).words == table.words


def test_words_that_no_vocabulary_can_have_are_not_counted():
    words = {"a" * 200: 1, "b" * 201: 2}
    assert filled(997, words).words == {"a" * 200: 1}


def held_out(lines):
    held = word_counts.HeldOutLines()
    return list(held.filter(lines)), held


def test_every_hundredth_line_is_held_out():
    learned, held = held_out(["", *map(str, range(1, 1501)), ""])
    assert held.lines == [str(i) for i in range(100, 1501, 100)]
    assert sorted(learned + held.lines) == sorted(map(str, range(1, 1501)))
    assert held.seen == 1500


@pytest.mark.parametrize("lines, kept", [(999, 0), (1000, 10)])
def test_nothing_is_held_out_of_a_short_corpus(lines, kept):
    learned, held = held_out(["a"] * lines)
    assert len(held.lines) == kept
    assert len(learned) == lines - kept


def test_held_out_lines_are_bounded_and_of_the_whole_corpus(monkeypatch):
    monkeypatch.setattr(word_counts, "HELD_OUT_SIZE", 60)
    numbers = [f"{i:05d}" for i in range(1, 10_001)]
    learned, held = held_out(numbers)
    assert held.lines == [f"{i:05d}" for i in range(800, 10_001, 800)]
    assert sorted(learned + held.lines) == numbers


def test_a_line_longer_than_the_limit_is_learned_from(monkeypatch):
    monkeypatch.setattr(word_counts, "HELD_OUT_SIZE", 60)
    lines = ["a"] * 1100
    lines[99] = "b" * 61
    learned, held = held_out(lines)
    assert "b" * 61 in learned
    assert sum(map(len, held.lines)) == 5  # every 200th from there on


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """Two files that make several chunks and fill the table."""
    rng = random.Random(1)
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for path in paths:
        words = [f"{rng.randint(1, 2000)}é" for _ in range(7919)]
        lines = (" ".join(words[i : i + 7]) for i in range(0, len(words), 7))
        path.write_text("\n".join(lines))
    monkeypatch.setattr(word_counts, "CHUNK_SIZE", 13_001)
    monkeypatch.setattr(word_counts, "TABLE_SIZE", 16_001)
    return list(map(str, paths))


def test_counts_are_the_same_for_any_number_of_processes(corpus):
    one, two = (
        word_counts.count_corpus(corpus, Casing(True), number)
        for number in (1, 2)
    )
    assert one == two
    assert one.is_held_out
    assert one.held_out.total() == 7 * 22  # 2,264 lines
    assert one.dropped_below > 0
    assert list(one.words) == list(two.words)


def test_counts_and_held_out_ones_are_those_of_the_corpus(corpus, monkeypatch):
    monkeypatch.setattr(word_counts, "TABLE_SIZE", 1_000_000)
    counts = word_counts.count_corpus(corpus, Casing(False), 1)
    split = tokenization.BasicTokenizer(do_lower_case=False).tokenize
    expected = Counter()
    for path in corpus:
        with open(path, encoding="utf-8") as file:
            expected.update(split(file.read()))
    assert counts.words + counts.held_out == expected
    assert counts.dropped_below == 0


def test_a_short_corpus_is_evaluated_on_itself(tmp_path):
    path = tmp_path / "short.txt"
    path.write_text("a b\n\nb\n")
    counts = word_counts.count_corpus([str(path)], Casing(True), 2)
    assert counts.words == counts.held_out == {"a": 1, "b": 2}
    assert not counts.is_held_out


def test_an_error_of_a_later_chunk_ends_all_processes(corpus):
    with open(corpus[1], "ab") as file:
        file.write(b"\nab \xff\n")
    with pytest.raises(UserError, match=r"b.txt:1133: .* 0xff at column 4"):
        word_counts.count_corpus(corpus, Casing(True), 2)
    assert multiprocessing.active_children() == []
