import copy
import random

import numpy as np
import pytest

import bert
from bert.common.errors import UserError
from bert.data.text import tokenization, tokenizer_files
from bert.data.text.casing import Casing
from tests.helpers import hard_texts, text

CLS, SEP = 2, 3


@pytest.fixture(scope="module")
def vocab(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    text.write_vocabulary(path)
    return str(path)


@pytest.fixture(scope="module")
def tokenizer(vocab):
    return bert.Tokenizer(vocab, max_length=13)


def test_a_batch_of_texts(tokenizer):
    batch = tokenizer(["The cat sees.", "dogs", ""])
    ids = tokenizer.exact.convert_tokens_to_ids
    expected = np.zeros((3, 6), np.int32)
    expected[0] = [CLS, *ids(["the", "cat", "sees", "."]), SEP]
    expected[1, :4] = [CLS, *ids(["dog", "##s"]), SEP]
    expected[2, :2] = [CLS, SEP]
    np.testing.assert_array_equal(batch["input_ids"], expected)
    np.testing.assert_array_equal(batch["input_mask"], expected > 0)
    assert not batch["segment_ids"].any()
    assert list(batch) == ["input_ids", "input_mask", "segment_ids"]
    assert {x.dtype for x in batch.values()} == {np.dtype(np.int32)}


def test_pairs_and_padding_to_the_maximum(tokenizer):
    batch = tokenizer("the cat", "a dog sees", padding="max_length")
    assert batch["input_ids"].shape == (1, 13)
    assert tokenizer.decode(batch["input_ids"]) == ["the cat a dog sees"]
    assert batch["segment_ids"].tolist() == [[0] * 4 + [1] * 4 + [0] * 5]
    assert batch["input_mask"].sum() == 8


def test_the_longer_text_of_a_pair_is_truncated(tokenizer):
    batch = tokenizer(
        ["the cat sees a dog", "the cat"], ["red", ""], max_length=6
    )
    words = ["the cat red", "the cat"]
    assert tokenizer.decode(batch["input_ids"][:, :-1])[1] == words[1]
    assert tokenizer.decode(batch["input_ids"])[0] == words[0]
    assert batch["segment_ids"].tolist() == [[0] * 4 + [1] * 2, [0] * 6]


def test_ids_are_those_of_the_original(vocab):
    tokenizer = bert.Tokenizer(vocab, do_lower_case=True, max_length=512)
    exact = tokenization.FullTokenizer(vocab, do_lower_case=True)
    rng = random.Random(3)
    texts = [hard_texts.random_text(rng) for _ in range(300)]
    texts = [x for x in texts if x.isprintable()] + ["Café dogs."]
    assert len(texts) > 30
    assert len("".join(texts)) < 2_000 < len("".join(texts * 9))
    for batch in (tokenizer(texts), tokenizer(texts * 9)):  # words, arrays
        masks = batch["input_mask"] == 1
        assert len(masks) in (len(texts), 9 * len(texts))
        for i, (row, mask) in enumerate(zip(batch["input_ids"], masks)):
            one = texts[i % len(texts)]
            ids = exact.convert_tokens_to_ids(exact.tokenize(one))
            assert row[mask].tolist() == [CLS, *ids, SEP]


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
