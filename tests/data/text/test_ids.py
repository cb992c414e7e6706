"""All tokenizers return the original's ids, and the same offsets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert.data.text import fast_tokenization
from tests.helpers import hard_texts
from tests.helpers.hard_texts import BLOCKS, HARD, MARKS
from tests.helpers.original_tokenization import LATER, MODES, known

LETTERS = {*HARD, *MARKS, *".,a'bc推", "\U00010428"}
LETTERS |= {chr(code) for first, stop in BLOCKS for code in range(first, stop)}
LONGER = "the ##es ##ing tree 東京 ##東京 un ##aff ##able a##b".split()
LONGER += ["a" * 7, "##" + "a" * 5, "##" + "b" * 201]

CHARACTERS = st.one_of(
    st.sampled_from(HARD),
    st.sampled_from(MARKS),
    st.sampled_from("thesaß"),
    st.sampled_from([chr(x) for block in BLOCKS for x in range(*block)]),
    st.characters(exclude_categories=["Cs"]),
)
TEXTS = st.text(CHARACTERS, max_size=30).map(known)
SOME = b"a \x80\x8f\x90\x9f\xa0\xbf\xc0\xc2\xe0\xe1\xed\xef\xf0\xf1\xf4\xf5"
BYTES = st.one_of(
    st.lists(st.sampled_from(SOME), max_size=12).map(bytes),
    st.tuples(TEXTS.map(str.encode), st.binary(max_size=2)).map(
        lambda x: x[0][: len(x[0]) // 2] + x[1] + x[0][len(x[0]) // 2 + 1 :]
    ),
).filter(lambda raw: not LATER.search(raw.decode("utf-8", "ignore")))


@pytest.fixture(scope="module", params=MODES, ids=str)
def tokenizer(request):
    """Most letters are tokens; words with others are `[UNK]`."""
    return hard_texts.tokenizer_of(LETTERS, *request.param, more=LONGER)


@settings(max_examples=60)
@given(texts=st.lists(TEXTS | BYTES, min_size=1, max_size=9))
def test_ids_and_offsets_are_the_originals(tokenizer, texts):
    hard_texts.assert_original(tokenizer, texts)
    hard_texts.assert_original(
        tokenizer, [" the ".join(x for x in texts if isinstance(x, str))]
    )


WORDS = [
    f"the {letter * count}{end} tree"
    for letter in ("a", "\u0430", "推", "\U00010428", "é", "e\u0301", ".", "b")
    for count in (1, 66, 199, 200, 201, 900)
    for end in ("", "b", ".")
]


@pytest.mark.parametrize(
    "texts",
    [
        # Nothing is folded further than by lower() and NFD.
        ["straße", "\u1e9e", "ﬁne", "x²", "①", "½", "ＡＢＣ", "İi", "É\u0301"],
        # The final sigma depends on the letters around it.
        ["ΟΔΟΣ ΣΑΣ", "ΟΔΟΣ.ΣΑΣ", "aΣ\u0301", "aΣ\u0301b", "Σ", "Σ\x00"],
        ["aΣ\u200bb", "aΣ'", "ΟΔΟΣ the", "Σσς", "\u02b0Σ"],
        # Characters that are dropped, separate, or stand alone.
        ["a\u00adb", "a\x00b", "\x00", "a\ufffdb", "\ufeffa", "\ufffe\uffff"],
        ["a\x85b", "a\u2028b", "a\u1680b", "a\xa0b", "a\x1cb", "a\tb\nc\rd"],
        ["", " ", " a", "a  b ", "\n", "the\n\nthes\n", "the\r\n", "\u3000"],
        ["ab推c", "東京the", "\U0002b820\uf900", "ひらカナ", "각 한국어"],
        ["[MASK] [unk] [CLS]", "##the ## #", "`^$+", "A¿b—c", "A€b£"],
        ["\u037e\u1fef", "\u1b4e\u1b7f\U0001e5ff", "a\ue000b"],
        # Marks that are reordered or stripped.
        ["\u302e\U0001d165", "\U0001d165\u0902\u302e", "a\u302e\u0301\u1b44"],
        ["a" + "\u302e\u302f\U0001d165" * 30 + "b"],
        ["\u0301", "a\u0301 \u0301b", "\u0301the\u0301 \u0301s", "\u0344e"],
        ["the\u200bs \u200bb\u200b", "he\u00adllo", "t\u200bh\x00e"],
        # Broken UTF-8.
        [b"a\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80a", b"\xf0\x9f\x92 "],
        # A word may have 200 letters; stripped accents do not count.
        WORDS,
    ],
)
def test_ids_of_hard_texts_are_the_originals(tokenizer, texts):
    hard_texts.assert_original(tokenizer, texts)


@settings(max_examples=50)
@given(texts=st.lists(TEXTS, max_size=20), size=st.integers(1, 99))
def test_blocks_change_nothing(tokenizer, texts, size):
    """Of several lines, and of very long lines."""
    texts = [*texts, "", "+".join(texts), "the trees"]
    with pytest.MonkeyPatch.context() as patch:
        whole = tokenizer.fast.ids_and_ends(texts)
        offsets = tokenizer.fast.with_offsets(texts)
        patch.setattr(fast_tokenization, "_BLOCK", size)
        blocks = tokenizer.fast.ids_and_ends(texts)
        of_blocks = tokenizer.fast.with_offsets(texts)
    pairs = zip((*whole, *offsets), (*blocks, *of_blocks), strict=True)
    for one, other in pairs:
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
