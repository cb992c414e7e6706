"""Learns a WordPiece vocabulary from counted words, reproducibly."""

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

    The tokens are the same as from the Hugging Face `tokenizers` trainer,
    except for ties. The trainer breaks ties by the order of a hash table, which
    changes from run to run. Here the alphabet is sorted, so that the same words
    give the same vocabulary.

    Args:
        words: Counter. Word -> count, as from `word_counts.count_corpus`,
            which drops long words.
        vocab_size: int. Number of tokens, including special and unused
            tokens. A small corpus may give fewer.
        min_frequency: int. Minimum frequency of a token pair to merge.
            Default: 2.
        num_unused: int. Number of `[unusedN]` slots after `[PAD]`. With the
            default, 99, `[UNK]`, `[CLS]`, `[SEP]` and `[MASK]` have the ids
            100 to 103, as in the released vocabularies.
        limit_alphabet: int. Maximum number of characters; the most frequent
            are kept. Default: 1000.

    Returns:
        list of str. `[PAD]`, unused, special, characters, merged tokens.

    Raises:
        UserError: `vocab_size` is too small for the characters, or the corpus
            has no word.
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
