"""The fast tokenizer returns the ids of the exact one on every line."""

import random
import string

import pytest

from data.text import fast_tokenization, tokenization
from tests.helpers.original_tokenization import MODES

ALPHABETS = (
    string.ascii_letters,
    string.printable,
    "".join(map(chr, range(0xA0, 0x250))),
    "ΑΒΓΔΣΩαβγδςσωάέήϊΰ",
    "АБВЙЁабвйёў",
    "ẤẵọựỷắẬ",
    "‐–—‘’“”„†•…‰′″€₤→∀∂−×÷",
    "\u0300\u0301\u0323\u0345",  # combining marks
    "\x00\x07\x7f\xad\u200b\u200d\ufeff\ufffd\u2028\u2029\u1680\u3000",
    "東京は日本の首都です한국어",
    "ßﬁ²½①ＡＢＣǅİıſ🙂\U00020000",
)
CHARACTERS = sorted(
    {c for letters in ALPHABETS for c in letters if c.isprintable()} - {" "}
    | {c.lower() for c in string.ascii_letters}
    | set("αβγδςσωабвйе")
)


@pytest.fixture(scope="module", params=MODES)
def both(request, tmp_path_factory):
    """Fast and exact tokenizer; every character is a token."""
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens += CHARACTERS + [f"##{x}" for x in CHARACTERS]
    tokens += ["the", "##ing", "tree", "a" * 7, "##" + "a" * 5]
    path.write_text("\n".join(dict.fromkeys(tokens)) + "\n", "utf-8")
    fast = fast_tokenization.FastTokenizer(str(path), *request.param)
    exact = tokenization.FullTokenizer(str(path), *request.param)
    return fast, exact


def assert_equal(both, lines):
    fast, exact = both
    for line, ids in zip(lines, fast.ids_of_lines(lines), strict=True):
        expected = exact.convert_tokens_to_ids(exact.tokenize(line))
        assert ids == expected, repr(line)


def test_random_lines(both):
    rng = random.Random(1)
    lines = []
    for _ in range(20_000):
        letters = "".join(rng.choices(ALPHABETS, k=rng.randint(1, 3))) + "   "
        lines.append("".join(rng.choices(letters, k=rng.randint(0, 23))))
    assert_equal(both, lines)


def test_lines_of_proven_characters_alone_take_the_kernel(both):
    fast, exact = both
    basic = exact.basic_tokenizer
    proven = fast._proven_characters()
    # The kernel lower-cases and strips accents, or does neither.
    does_both = basic.do_lower_case == basic.strip_accents
    assert len(proven) > (1500 if does_both else 1000)
    assert set(string.ascii_letters + string.digits + "–’ ") <= set(proven)
    assert ("é" in proven) == does_both
    rng = random.Random(2)
    lines = ["".join(rng.choices(proven, k=23)) for _ in range(20_000)]
    assert all(map(fast._is_proven, lines))
    assert_equal(both, lines)


@pytest.mark.parametrize("letter", ["a", "é", "α", "ế", "東", "."])
def test_words_of_any_length(both, letter):
    lengths = [1, 65, 66, 67, 68, 99, 100, 101, 199, 200, 201, 202, 400]
    assert_equal(both, [f"the {letter * n} tree" for n in lengths])
    assert_equal(both, [f"the{letter * n}." for n in lengths])


def test_special_tokens_in_the_text_are_split(both):
    assert_equal(both, ["[MASK] the [UNK] [unused1]", "[CLS]", "##ing ## #"])


def test_characters_on_which_the_kernel_differs_are_excluded(both):
    fast, exact = both
    assert not any(map(fast._is_proven, ["\x07", "\ufffd", "Σ", "e\u0301"]))
    if exact.basic_tokenizer.do_lower_case:
        assert not any(map(fast._is_proven, "ß…²½"))


def test_no_lines_and_empty_lines(both):
    fast, _ = both
    assert fast.ids_of_lines([]) == []
    assert fast.ids_of_lines(["", " ", "\u200b"]) == [[], [], []]


def test_a_vocabulary_that_the_kernel_rejects_takes_the_exact_path(tmp_path):
    path = tmp_path / "vocab.txt"
    tokens = "[PAD] [UNK] [CLS] [SEP] [MASK] the tree ## ##s".split()
    path.write_text("\n".join([*tokens, 257 * "a"]) + "\n")
    fast = fast_tokenization.FastTokenizer(str(path))
    assert fast._kernel is None
    assert fast.ids_of_lines(["the trees", ""]) == [[5, 6, 8], []]
