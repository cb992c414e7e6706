"""Learning of a WordPiece vocabulary from counted words, reproducibly."""

from collections import Counter

from common.errors import UserError
from data.text.vocabulary import CLS, MASK, PAD, SEP, UNK


def learn_vocabulary(
    words: Counter,
    vocab_size: int,
    *,
    min_frequency: int = 2,
    num_unused: int = 99,
    limit_alphabet: int = 1000,
    max_chars_per_word: int = 200,
) -> list[str]:
    """Learns a WordPiece vocabulary from counted words.

    Hugging Face `tokenizers` merges the tokens. It numbers single characters
    in the order of a hash table, which changes from run to run and decides
    ties; so the alphabet is chosen and ordered here and passed as fixed
    tokens. The same words give the same vocabulary.

    Args:
        words: word -> count, from `word_counts.count_corpus`.
        vocab_size: length of the vocabulary, special and unused tokens
            included; a small corpus may give fewer.
        min_frequency: minimum frequency of a pair of tokens to merge.
        num_unused: number of `[unusedN]` slots after `[PAD]`; with 99,
            `[UNK]`, `[CLS]`, `[SEP]` and `[MASK]` have the ids 100 to 103 as
            in the released files.
        limit_alphabet: maximum number of characters; the most frequent ones
            are kept.
        max_chars_per_word: longer words are `[UNK]` and ignored.

    Returns:
        the tokens: `[PAD]`, unused, special, characters, merged tokens.

    Raises:
        UserError: `vocab_size` is too small for the characters, or there is
            no word.
    """
    import tokenizers

    words = Counter(
        {w: n for w, n in words.items() if len(w) <= max_chars_per_word}
    )
    head = [PAD, *(f"[unused{i}]" for i in range(num_unused))]
    head += [UNK, CLS, SEP, MASK]
    alphabet = _alphabet(words, limit_alphabet)
    if not alphabet:
        raise UserError("the corpus has no word", expected="text")
    size = vocab_size - len(head)
    if size < len(alphabet):
        raise UserError(
            f"--vocab_size={vocab_size} is too small",
            expected=f"at least {len(head) + len(alphabet)}: {len(head)} "
            f"special and unused tokens and {len(alphabet)} characters",
        )
    model = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token=UNK))
    model.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=min_frequency,
        special_tokens=alphabet,
        continuing_subword_prefix="##",
        show_progress=False,
    )
    known = set(alphabet)
    model.train_from_iterator(_repeat(words, known), trainer)
    learned = sorted(model.get_vocab().items(), key=lambda item: item[1])
    merged = [token for token, _ in learned if token not in known]
    return head + alphabet + merged[: size - len(alphabet)]


def _alphabet(words: Counter, limit_alphabet: int) -> list[str]:
    """Returns the tokens of the most frequent characters, in order."""
    counts: Counter = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    kept = sorted(counts, key=lambda c: (-counts[c], c))[:limit_alphabet]
    inside = {character for word in words for character in word[1:]}
    return sorted(kept) + [f"##{c}" for c in sorted(inside & set(kept))]


def _repeat(words: Counter, known: set[str]):
    """Yields lines that repeat each word as often as it was counted.

    Words with a character outside the alphabet are `[UNK]`, so they are
    skipped.
    """
    for word in sorted(words):
        letters = {word[0], *(f"##{c}" for c in word[1:])}
        if letters <= known:
            left = words[word]
            while left > 0:
                yield " ".join([word] * min(left, 1000))
                left -= 1000
