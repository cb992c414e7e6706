"""Learning of a WordPiece vocabulary from counted words, reproducibly."""

from collections import Counter

from bert.common.errors import UserError
from bert.data.corpus import pair_merging
from bert.data.text import vocabulary_checks
from bert.data.text.vocabulary import CLS, MASK, PAD, SEP, UNK


def learn_vocabulary(
    words: Counter,
    vocab_size: int,
    *,
    min_frequency: int = 2,
    num_unused: int = 99,
    limit_alphabet: int = 1000,
) -> list[str]:
    """Learns a WordPiece vocabulary from counted words.

    The tokens are those of the trainer of Hugging Face `tokenizers`. That one
    numbers single characters in the order of a hash table, which changes from
    run to run and decides ties; here the alphabet is ordered, so that the same
    words give the same vocabulary.

    Args:
        words: word -> count, from `word_counts.count_corpus`, which drops
            long words.
        vocab_size: length of the vocabulary, special and unused tokens
            included; a small corpus may give fewer.
        min_frequency: minimum frequency of a pair of tokens to merge.
        num_unused: number of `[unusedN]` slots after `[PAD]`; with 99,
            `[UNK]`, `[CLS]`, `[SEP]` and `[MASK]` have the ids 100 to 103 as
            in the released files.
        limit_alphabet: maximum number of characters; the most frequent ones
            are kept.

    Returns:
        the tokens: `[PAD]`, unused, special, characters, merged tokens.

    Raises:
        UserError: `vocab_size` is too small for the characters, or there is
            no word.
    """
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

    # Words with other characters are [UNK].
    characters = set(alphabet)
    covered = {
        word: count
        for word, count in words.items()
        if word[0] in characters
        and characters.issuperset(f"##{c}" for c in word[1:])
    }
    merged = pair_merging.merge_pairs(covered, alphabet, size, min_frequency)
    kept = [x for x in merged if not vocabulary_checks.is_too_long(x)]
    return head + alphabet + kept


def _alphabet(words: Counter, limit_alphabet: int) -> list[str]:
    """Returns the tokens of the most frequent characters, in order."""
    counts: Counter = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count

    kept = sorted(counts, key=lambda c: (-counts[c], c))[:limit_alphabet]
    inside = {character for word in words for character in word[1:]}
    return sorted(kept) + [f"##{c}" for c in sorted(inside & set(kept))]
