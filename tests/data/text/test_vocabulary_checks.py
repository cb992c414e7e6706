"""Warnings of vocabularies that do not match their use."""

import pytest

from bert.common.errors import UserError
from bert.data.text import vocabulary_checks
from bert.data.text.tokenizer import Tokenizer
from tests.helpers import text

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]"]
LOWER = [*SPECIAL, "the", "##s", "."]
CASED = [*LOWER, "The"]
CASELESS = [*SPECIAL, "的", "."]


def test_casing_and_vocabulary_go_together():
    for tokens, lower, message in (
        (LOWER, True, None),
        (CASED, False, None),
        (CASELESS, True, None),
        (CASELESS, False, None),
        (CASED, None, None),
        (CASED, True, "v: has some tokens with capital letters, "),
        (LOWER, False, "v: has no tokens with capital letters, "),
    ):
        tokenizer = Tokenizer("v", lower, tokens=tokens)
        found = vocabulary_checks.mismatches(tokenizer)
        assert len(found) == (message is not None)
        assert all(str(error).startswith(message) for error in found)


STRIPPED = (
    "warning: v: in a sample of {} texts, {} of the characters are vowel "
    "signs, umlauts or accents that are stripped; expected at most 0.3%; pass "
    "--nostrip_accents, also to create_vocab.py, or use a cased model"
)


@pytest.mark.parametrize(
    ("casing", "texts", "line"),
    [
        ((True, None), ["हिन्दी में"] * 3, STRIPPED.format(3, "30.0%")),
        ((True, None), ["ที่นี่ยังมี"], STRIPPED.format(1, "54.5%")),
        ((True, None), ["Über", "schöne T"], STRIPPED.format(2, "16.7%")),
        ((False, True), ["U\u0308ber schone"], STRIPPED.format(1, "8.3%")),
        ((True, None), ["café " + 395 * "a"], None),
        ((True, None), ["的 the 한국어"], None),
        ((True, None), [*["the"] * 1000, "हिन्दी"], None),
        ((True, None), ["the" * 1000 + "हिन्दी"], None),
        ((True, False), ["हिन्दी में"], None),
        ((False, None), ["हिन्दी में"], None),
    ],
)
def test_characters_that_are_stripped_are_warned_of(
    monkeypatch, casing, texts, line
):
    tokenizer = Tokenizer("v", *casing, tokens=LOWER)
    logged = []
    monkeypatch.setattr(vocabulary_checks, "log", logged.append)
    vocabulary_checks.warn(tokenizer, texts=iter(texts))
    found = [text for text in logged if "accents" in text]
    assert found == ([line] if line else [])

    # A model that records its casing rejects the flag.
    logged.clear()
    vocabulary_checks.warn(
        tokenizer, texts=iter(texts), trained=tokenizer.casing
    )
    if line:
        start, _, _ = line.partition("pass ")
        end = "use a cased model, or one trained with --nostrip_accents"
        assert logged[-1] == start + end


@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("a" * 256, None),
        ("##" + "a" * 256, None),
        ("a" * 257, ", 257 bytes; expected at most 256"),
        ("##" + "\u00e9" * 129, ", 260 bytes; expected at most 256"),
        ("a\0", ", 2 bytes; expected at most 256 bytes without null bytes"),
        ("##\0a", ", 4 bytes; expected at most 256 bytes without null bytes"),
        ("##", None),
        ("####", None),
        ("\u200b", None),
        ("a b", None),
    ],
)
def test_tokens_that_a_graph_does_not_support_are_named(
    tmp_path, token, message
):
    """The rule is the one of TensorFlow Text's kernel."""
    path = tmp_path / "vocab.txt"
    text.write_vocabulary(path, [*LOWER, token, "#"])
    tokenizer = Tokenizer(str(path))
    if message is None:
        vocabulary_checks.check_exportable(tokenizer)
        found = tokenizer.graph.tokenize([f"the {token[:7]} ## thes"])
        ids = [tokenizer.vocab[x] for x in ("the", "##s")]
        assert found.to_list()[0][-1] == ids
        return
    with pytest.raises(UserError) as caught:
        vocabulary_checks.check_exportable(tokenizer)
    assert str(caught.value).startswith(f"{path}:{len(LOWER) + 1}: token ")
    assert message in str(caught.value)
    with pytest.raises(RuntimeError):
        assert tokenizer.graph
