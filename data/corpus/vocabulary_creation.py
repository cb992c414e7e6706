"""Corpus -> vocabulary: a new one, or a published one with more words."""

import dataclasses
import os

from common import flags, storage
from common.errors import UserError
from common.flags import flag, group
from common.progress import say
from data.corpus import vocabulary_fit, vocabulary_learner, word_counts
from data.text import tokenization, vocabulary, vocabulary_slots
from data.text.settings import Casing


@dataclasses.dataclass(frozen=True)
class Learning:
    """A vocabulary that is learned anew."""

    vocab_size: int = flag(
        30522, "Tokens, special and unused ones included.", at_least=1
    )
    num_unused: int = flag(99, "[unusedN] slots after [PAD].", at_least=0)
    limit_alphabet: int = flag(
        1000,
        "Maximum number of characters; the most frequent are kept.",
        at_least=1,
    )


@dataclasses.dataclass(frozen=True)
class Settings:
    """Creation of a vocabulary."""

    input_file: str | None = flag(
        None,
        "Corpus: files and globs, separated by commas.",
        required=True,
        path=True,
    )
    output_file: str | None = flag(
        None, "The vocabulary to write.", required=True, path=True
    )
    casing: Casing = group(Casing)
    learning: Learning = group(Learning)
    min_frequency: int = flag(
        2,
        "Minimum frequency of a pair of tokens that is merged, and of a word "
        "that is added to --base_vocab.",
        at_least=1,
    )
    base_vocab: str | None = flag(
        None,
        "Vocabulary whose [unusedN] slots take words of the corpus.",
        path=True,
    )
    num_new_tokens: int | None = flag(
        None, "Words to put into --base_vocab.", at_least=1
    )
    num_processes: int | None = flag(
        None,
        "Processes that count words; default: one for each core.",
        at_least=1,
    )
    given: frozenset[str] = frozenset()

    def check(self) -> None:
        """Checks the flags against each other, and the output file.

        Raises:
            UserError: they contradict each other, or the file cannot be one.
        """
        storage.check_output_file(self.output_file, "output_file")
        if bool(self.base_vocab) != bool(self.num_new_tokens):
            raise UserError(
                "--base_vocab and --num_new_tokens need each other",
                fix="pass both, or neither to learn a new vocabulary",
            )
        for name in flags.as_dict(self.learning):
            if self.base_vocab and name in self.given:
                raise UserError(
                    f"--{name} contradicts --base_vocab, whose tokens stay",
                    fix="leave one of the two out",
                )


def read_base(settings: Settings) -> list[str] | None:
    """Reads the vocabulary to extend, if there is one.

    Raises:
        UserError: it cannot be read, or has too few unused slots.
    """
    if not settings.base_vocab:
        return None
    tokens = list(vocabulary.read_vocabulary(settings.base_vocab))
    slots = len(vocabulary_slots.unused_slots(tokens))
    if slots < settings.num_new_tokens:
        raise UserError(
            f"{slots} [unusedN] slots for {settings.num_new_tokens} words",
            path=settings.base_vocab,
            expected=f"--num_new_tokens={slots} at the most"
            if slots
            else "a vocabulary with [unusedN] slots",
        )
    lower = settings.casing.do_lower_case
    if lower != tokenization.looks_lower_case(tokens):
        say(
            f"warning: {settings.base_vocab} does not look as if made with "
            f"--do_lower_case={lower}"
        )
    return tokens


def count_words(settings: Settings, files: list[str]) -> word_counts.Counts:
    """Counts the words of the corpus; logs if rare ones were dropped."""
    counts = word_counts.count_corpus(
        files,
        settings.casing.do_lower_case,
        settings.num_processes or os.cpu_count() or 1,
        settings.casing.strip_accents,
    )
    if counts.dropped_below:
        say(
            "the corpus has more different words than are counted at once: "
            f"some seen less than {counts.dropped_below:,} times were dropped"
        )
    return counts


def extend(
    base: list[str], counts: word_counts.Counts, settings: Settings
) -> tuple[list[str], int]:
    """Puts the words that are split most into unused slots.

    Returns:
        the tokens, and the number of new ones.

    Raises:
        UserError: there is no word to add.
    """
    words = vocabulary_fit.missing_words(
        counts.words, base, settings.min_frequency
    )[: settings.num_new_tokens]
    if not words:
        raise UserError(
            "no word to add",
            path=settings.base_vocab,
            expected="words that it splits, seen "
            f"--min_frequency={settings.min_frequency} times",
        )
    if len(words) < settings.num_new_tokens:
        say(f"warning: the corpus has only {len(words):,} words to add")
    return vocabulary_slots.place_words(base, words)[0], len(words)


def learn(counts: word_counts.Counts, settings: Settings) -> list[str]:
    """Learns a new vocabulary; warns if it is smaller than it should be."""
    tokens = vocabulary_learner.learn_vocabulary(
        counts.words,
        min_frequency=settings.min_frequency,
        **flags.as_dict(settings.learning),
    )
    wanted = settings.learning.vocab_size
    if len(tokens) < wanted:
        say(
            f"warning: {len(tokens):,} tokens, not {wanted:,}: "
            "the corpus has no more pairs to merge"
        )
    return tokens


def write(path: str, tokens: list[str]) -> None:
    """Writes the vocabulary, whole or not at all.

    Raises:
        UserError: the file cannot be written.
    """
    try:
        vocabulary.write_vocabulary(path, tokens)
    except OSError as error:
        raise UserError(
            f"cannot be written: {error.strerror}", path=path
        ) from None


def report(
    counts: word_counts.Counts, tokens: list[str], base: list[str] | None
) -> list[str]:
    """The fit to held-out lines: one line, or one before and one after.

    Args:
        counts: of the corpus.
        tokens: the vocabulary that was written.
        base: the vocabulary that was extended, or None.
    """
    where = "held out"
    if not counts.is_held_out:
        where = "the text itself, too short to hold lines out"
    measured = {where: tokens}
    if base:
        measured = {f"{where}, before": base, f"{where}, after": tokens}
    return [
        f"{name}: {vocabulary_fit.measure(counts.held_out, these)}"
        for name, these in measured.items()
    ]
