import copy

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies

import bert
from bert.common.errors import UserError
from bert.data.text import tokenizer_files
from bert.data.text.casing import Casing
from tests.helpers import text

CLS, SEP = 2, 3


@pytest.fixture(scope="module")
def vocab(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    text.write_vocabulary(path)
    return str(path)


@pytest.fixture(scope="module")
def tokenizer(vocab):
    return bert.Tokenizer(vocab, max_length=13)


WORDS = ["The", "cats", "Café", "zzz", "日本", "e\u0301", "\x07", ".", "\ud800"]
TEXTS = strategies.lists(
    strategies.sampled_from(WORDS) | strategies.text(max_size=3), max_size=9
).map(" ".join)


@hypothesis.given(
    pairs=strategies.lists(
        strategies.tuples(TEXTS, strategies.just("") | TEXTS), min_size=1
    ),
    max_length=strategies.integers(5, 13),
    padding=strategies.sampled_from(["longest", "max_length"]),
)
def test_rows_are_the_pairs_of_the_original(
    tokenizer, pairs, max_length, padding
):
    """Of few texts, word by word, and of many, as arrays."""
    ids = tokenizer.exact.convert_tokens_to_ids
    rows = []
    for pair in pairs:
        a, b = (ids(tokenizer.exact.tokenize(x)) for x in pair)
        while len(a) + len(b) > max_length - (3 if b else 2):
            (a if len(a) > len(b) else b).pop()
        end = [*b, SEP] if b else []
        segments = [0] * (len(a) + 2) + [1] * len(end)
        rows.append(([CLS, *a, SEP, *end], [1] * len(segments), segments))
    width = max(len(row) for row, *_ in rows)
    if padding == "max_length":
        width = max_length
    for copies in (1, 3000 // len(str(pairs)) + 1):
        batch = tokenizer(
            *map(list, zip(*pairs * copies)),
            max_length=max_length,
            padding=padding,
        )
        assert list(batch) == ["input_ids", "input_mask", "segment_ids"]
        for found, columns in zip(batch.values(), zip(*rows)):
            padded = [x + [0] * (width - len(x)) for x in columns]
            assert found.dtype == np.int32
            assert found.tolist() == padded * copies


def test_offsets_are_characters_of_the_text(tokenizer):
    texts, pairs = ["é cäts the DOGS", "tree"], ["", "a fish, dogs"]
    batch = tokenizer(texts, pairs, offsets=True)
    plain = tokenizer(texts, pairs)
    for name, expected in plain.items():
        np.testing.assert_array_equal(batch[name], expected)
    assert batch["offsets"].dtype == np.int32
    assert batch["offsets"].shape == (*plain["input_ids"].shape, 2)
    found = [
        [one[s][x:y] for s, (x, y) in zip(segments, spans)]
        for one, segments, spans in zip(
            zip(texts, pairs),
            batch["segment_ids"].tolist(),
            batch["offsets"].tolist(),
        )
    ]
    assert found[0] == ["", "é", "cät", "s", "the", "DOG", "S", "", ""]
    assert found[1] == ["", "tree", "", "a", "fish", ",", "dog", "s", ""]


def test_offsets_are_truncated_with_the_tokens(tokenizer):
    batch = tokenizer("the cat sees", "a dog", max_length=6, offsets=True)
    assert batch["offsets"].tolist() == [
        [[0, 0], [0, 3], [4, 7], [0, 0], [0, 1], [0, 0]]
    ]
    batch = tokenizer("the cat sees a dog", max_length=5, offsets=True)
    assert batch["offsets"].tolist() == [
        [[0, 0], [0, 3], [4, 7], [8, 12], [0, 0]]
    ]


def test_half_a_surrogate_pair_has_no_offsets(tokenizer):
    assert tokenizer.decode(tokenizer(["a \ud800"])["input_ids"]) == ["a [UNK]"]
    message = r"half a surrogate pair at 2 of 'a \\ud800'; expected Unicode"
    with pytest.raises(UserError, match=message):
        tokenizer(["a \ud800"], offsets=True)


@pytest.mark.parametrize(
    ("last", "recorded", "given", "expected"),
    [
        ("the", None, (), (True, None, "guessed")),
        ("The", None, (), (False, None, "guessed")),
        ("##É", None, (), (False, None, "guessed")),
        ("The", None, (True,), (True, None, "")),
        ("The", (True, False), (), (True, False, "")),
        ("the", (False, None), (), (False, None, "")),
        ("the", (False, True), (True,), (True, None, "")),
        ("the", (True, True), (None, False), (True, False, "")),
    ],
)
def test_the_casing_is_recorded_or_guessed(
    tmp_path, capsys, last, recorded, given, expected
):
    path = tmp_path / "vocab.txt"
    text.write_vocabulary(path, [*text.VOCABULARY[:5], last])
    if recorded:
        tokenizer_files.write_config(str(tmp_path), Casing(*recorded))
    tokenizer = bert.Tokenizer(str(path), *given)
    copied = copy.deepcopy(tokenizer)  # as pickle does
    for one in (tokenizer, copied):
        assert (one.do_lower_case, one.strip_accents) == expected[:2]
        logged = capsys.readouterr().err
        assert logged.partition(" ")[0] == expected[2]
    assert copied.max_length == 512


def test_a_tokenizer_is_not_changed(tokenizer):
    ids = tokenizer("the cat sees")["input_ids"]
    shorter = tokenizer.with_max_length(3)
    assert shorter("the cat sees")["input_ids"].shape == (1, 3)
    assert tokenizer("the cat sees")["input_ids"].tolist() == ids.tolist()
    with pytest.raises(AttributeError):
        tokenizer.do_lower_case = False


def test_one_text_is_decoded_to_a_string(tokenizer):
    ids = tokenizer("Dogs see.")["input_ids"][0]
    assert tokenizer.decode(ids) == "dogs [UNK] ."
    assert tokenizer.decode([7, 9_999, 4]) == "cat [UNK] [MASK]"
    batch = tokenizer("the cat", "a dog sees")
    assert tokenizer.decode(batch["input_ids"]) == ["the cat a dog sees"]


def test_no_text_is_an_empty_batch(tokenizer):
    assert {x.shape for x in tokenizer([]).values()} == {(0, 0)}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text_pairs": ["a", "b"]}, "2 text_pairs; expected 1"),
        ({"padding": "left"}, "padding='left'; expected one of longest"),
        ({"max_length": 14}, "max_length=14; expected 3 to 13"),
        ({"max_length": 2}, "max_length=2; expected 3 to 13"),
        ({"max_length": "5"}, "max_length=5; expected 3 to 13"),
        ({"return_tensors": "tf"}, "argument return_tensors; expected text_p"),
    ],
)
def test_invalid_arguments(options, message, tokenizer):
    with pytest.raises(UserError, match=message):
        tokenizer(["the"], **options)


def test_a_length_has_room_for_a_token():
    with pytest.raises(UserError, match="max_length=0; expected 3 or more"):
        bert.Tokenizer("vocab.txt", max_length=0, tokens=["a"])


@pytest.mark.parametrize("offsets", [False, True])
@pytest.mark.parametrize(
    ("value", "shown"), [(b"a", "b'a'"), (None, "None"), (float("nan"), "nan")]
)
def test_other_objects_than_strings_are_named(tokenizer, value, shown, offsets):
    """In small and in large batches."""
    for count in (1, 3000):
        texts = ["a"] * count + [value]
        message = rf"texts\[{count}\] is {shown}; expected a str"
        with pytest.raises(UserError, match=message):
            tokenizer(texts, offsets=offsets)
    with pytest.raises(UserError, match=rf"text_pairs\[0\] is {shown}"):
        tokenizer(["a"], [value])


def test_a_tokenizer_for_another_process_has_no_kernels(tokenizer):
    """Beam compresses a job for each of its stages: kernels take seconds."""
    expected = tokenizer(["cat"])["input_ids"]
    kernels = tokenizer.exact, tokenizer.fast, tokenizer.graph
    assert tokenizer.with_max_length(5).fast is kernels[1]
    found = copy.deepcopy(tokenizer)  # as pickle does
    assert not {"exact", "fast", "_graph"} & vars(found).keys()
    np.testing.assert_array_equal(found(["cat"])["input_ids"], expected)
    assert found.casing == tokenizer.casing
