"""Creates a vocabulary from a corpus, new or by extending another."""

import dataclasses
from collections.abc import Iterator

from bert.common import outputs, processes
from bert.common.errors import UserError
from bert.common.flags import BaseSettings, flag
from bert.common.progress import counted, log
from bert.common.rules import needs, rule
from bert.data.corpus import (
    documents,
    vocabulary_fit,
    vocabulary_learner,
    word_counts,
)
from bert.data.text import (
    vocabulary,
    vocabulary_checks,
)
from bert.data.text.casing import NewCasing

_SAMPLE = 20  # number of learned words that are printed


_NEW = ("vocab_size", "num_unused", "limit_alphabet")  # for new vocabularies


def _check_extended(settings: "Settings") -> Iterator[UserError]:
    """Yields an error for each flag that only new vocabularies have."""
    for name in _NEW:
        if settings.base_vocab and name in settings.given:
            yield UserError(
                f"--{name} contradicts --base_vocab, whose tokens are kept",
                fix="pass only one of the two",
            )


@dataclasses.dataclass(frozen=True)
class Settings(BaseSettings, NewCasing):
    """Settings of create_vocab.py."""

    RULES = [
        needs("base_vocab", "num_new_tokens"),
        needs("num_new_tokens", "base_vocab"),
        rule(
            "--base_vocab keeps its size and characters.",
            _check_extended,
            "base_vocab",
            "vocab_size",
        ),
    ]

    input_file: str = flag(
        None,
        "Corpus: files and globs, separated by commas.",
        required=True,
        path=True,
    )
    output_file: str = flag(
        None,
        "The vocabulary to write.",
        required=True,
        path=True,
        parse=lambda path: outputs.check_file(path, "output_file"),
    )
    vocab_size: int = flag(
        30522,
        "Number of tokens, including special and unused ones.",
        at_least=1,
    )
    num_unused: int = flag(
        99, "Number of [unusedN] slots after [PAD].", at_least=0
    )
    limit_alphabet: int = flag(
        1000,
        "Maximum number of characters; the most frequent are kept.",
        at_least=1,
    )
    min_frequency: int = flag(
        2,
        "Minimum frequency of a token pair to merge, or of a word to add to "
        "--base_vocab.",
        at_least=1,
    )
    base_vocab: str | None = flag(
        None,
        "Vocabulary to extend: words of the corpus fill its [unusedN] slots.",
        path=True,
    )
    num_new_tokens: int | None = flag(
        None, "Number of words to add to --base_vocab.", at_least=1
    )
    num_processes: int | None = flag(
        None,
        "Number of processes that count words; default: one per core.",
        at_least=1,
    )

    @property
    def num_words(self) -> int:
        """Number of words to add to --base_vocab; 0 without it."""
        return self.num_new_tokens or 0


def read_base(settings: Settings) -> list[str] | None:
    """Reads the vocabulary to extend.

    Args:
        settings: Settings. Settings of the script.

    Returns:
        list of str or None. Its tokens, or None without `--base_vocab`.

    Raises:
        UserError: The file cannot be read or has too few [unusedN] slots.
    """
    if not settings.base_vocab:
        return None
    vocab = vocabulary.read_vocabulary(settings.base_vocab)
    tokens = list(vocab)

    # The network has no embeddings for additional tokens.
    slots = len(vocabulary.unused_slots(tokens))
    if slots < settings.num_words:
        raise UserError(
            f"{slots} [unusedN] slots for {settings.num_words} words",
            path=settings.base_vocab,
            expected=f"at most --num_new_tokens={slots}"
            if slots
            else "a vocabulary with [unusedN] slots",
        )

    # `is_cased` is None for scripts without case, for which no warning is due.
    lower = settings.do_lower_case
    if vocabulary_checks.is_cased(vocab) is lower:
        log(
            f"warning: {settings.base_vocab} does not look like a vocabulary "
            f"for --do_lower_case={lower}"
        )
    return tokens


def count_words(settings: Settings, files: list[str]) -> word_counts.WordCounts:
    """Counts the words of the corpus.

    Warns if many accents are stripped, or if rare words were dropped.

    Args:
        settings: Settings. Settings of the script.
        files: list of str. Paths of the corpus.
    """
    # Warn before counting, which takes long.
    vocabulary_checks.warn_of_accents(
        settings.strips_accents,
        settings.input_file,
        documents.sample_lines(files),
    )

    log(f"counting the words of {counted(len(files), 'file')}")
    counts = word_counts.count_corpus(
        files,
        settings,
        settings.num_processes or processes.num_cores(),
    )

    if counts.dropped_below:
        log(
            "the corpus has too many distinct words to count: some words that "
            f"occur less than {counts.dropped_below:,} times were dropped"
        )
    return counts


def extend(
    base: list[str], counts: word_counts.WordCounts, settings: Settings
) -> tuple[list[str], int]:
    """Fills unused slots with the words that cost the most tokens.

    Args:
        base: list of str. Tokens of the vocabulary to extend.
        counts: WordCounts. Word counts of the corpus.
        settings: Settings. Settings of the script.

    Returns:
        (list of str, int). The tokens and the number of new tokens.

    Raises:
        UserError: The corpus has no word to add.
    """
    log(f"tokenizing {len(counts.words):,} different words")
    words = vocabulary_fit.missing_words(
        counts.words, base, settings.min_frequency
    )[: settings.num_words]

    if not words:
        raise UserError(
            "no word to add",
            path=settings.base_vocab,
            expected="words that it splits and that occur "
            f"--min_frequency={settings.min_frequency} times",
        )
    if len(words) < settings.num_words:
        log(f"warning: the corpus has only {len(words):,} words to add")
    return vocabulary.add_words(base, words)[0], len(words)


def learn(counts: word_counts.WordCounts, settings: Settings) -> list[str]:
    """Learns a new vocabulary; warns if it is smaller than requested."""
    log(f"merging tokens of {len(counts.words):,} different words")
    tokens = vocabulary_learner.learn_vocabulary(
        counts.words,
        settings.vocab_size,
        min_frequency=settings.min_frequency,
        num_unused=settings.num_unused,
        limit_alphabet=settings.limit_alphabet,
    )

    wanted = settings.vocab_size
    if len(tokens) < wanted:
        log(
            f"warning: {len(tokens):,} tokens, not {wanted:,}: "
            "the corpus has no more pairs to merge"
        )
    return tokens


def report(
    counts: word_counts.WordCounts, tokens: list[str], base: list[str] | None
) -> list[str]:
    """Describes the fit of the vocabulary to held-out lines.

    Args:
        counts: WordCounts. Word counts of the corpus.
        tokens: list of str. The new vocabulary.
        base: list of str or None. The vocabulary that was extended, if any.

    Returns:
        list of str. One line with the fit, or one for each of `base` and
        `tokens`, and a line with a sample of the new words.
    """
    where = "held out"
    if not counts.is_held_out:
        where = "all text (too short for held-out lines)"

    measured = {where: tokens}
    if base:
        measured = {f"{where}, before": base, f"{where}, after": tokens}

    # Only full words: no characters, word pieces or special tokens.
    old = set(base or ())
    words = [x for x in tokens if x[1:] and x[0] not in "[#" and x not in old]
    sample = words[:: len(words) // _SAMPLE + 1]
    return [
        *(
            f"{name}: {vocabulary_fit.describe(counts.held_out, vocab)}"
            for name, vocab in measured.items()
        ),
        f"words, a sample: {' '.join(sample)}",
    ]
