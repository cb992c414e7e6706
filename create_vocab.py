r"""Corpus -> WordPiece vocabulary.

    python create_vocab.py --input_file='wiki/*.txt.gz' \
        --output_file=vocab.txt --vocab_size=30522

Words are split exactly as the tokenizer splits them. The same corpus and
flags give the same file. With `--base_vocab` the words that a published
vocabulary splits most take its `[unusedN]` slots, and no other id changes.
"""

import os
import sys

from absl import flags

from common.errors import UserError
from common.progress import say
from data.corpus import vocabulary_fit, vocabulary_learner, word_counts
from data.text import tokenization, vocabulary, vocabulary_slots
from tasks import common_flags, text_flags

# Flags of a vocabulary that is learned anew: (name, default, lowest, meaning).
_LEARNING = (
    ("vocab_size", 30522, 1, "Tokens, special and unused ones included."),
    ("num_unused", 99, 0, "[unusedN] slots after [PAD]."),
    ("limit_alphabet", 1000, 1, "So many characters, the most frequent."),
)


def define_flags(values: flags.FlagValues) -> None:
    """Defines this script's flags."""
    for name, meaning in (
        ("input_file", "Corpus: files and globs, separated by commas."),
        ("output_file", "The vocabulary to write."),
    ):
        flags.DEFINE_string(
            name, None, meaning, flag_values=values, required=True
        )
    text_flags.define_case(values)
    flags.DEFINE_string(
        "base_vocab",
        None,
        "Vocabulary whose [unusedN] slots take words of the corpus.",
        flag_values=values,
    )
    for name, default, lowest, meaning in (
        *_LEARNING,
        ("min_frequency", 2, 1, "Merges pieces, adds words, seen so often."),
        ("num_new_tokens", None, 1, "Words to put into --base_vocab."),
        ("num_processes", None, 1, "That count; default: one for each core."),
    ):
        flags.DEFINE_integer(
            name, default, meaning, flag_values=values, lower_bound=lowest
        )


def read_flags(argv: list[str]) -> tuple[flags.FlagValues, list[str]]:
    """Reads and checks the command line: (flags, input files)."""
    values = common_flags.parse(argv, define_flags, __doc__)
    text_flags.check_output_file(values.output_file, "output_file")
    if bool(values.base_vocab) != bool(values.num_new_tokens):
        raise UserError(
            "--base_vocab and --num_new_tokens need each other",
            fix="pass both, or neither to learn a new vocabulary",
        )
    given = [name for name, *_ in _LEARNING if values[name].present]
    if values.base_vocab and given:
        raise UserError(
            f"--{given[0]} contradicts --base_vocab, whose tokens stay",
            fix="leave one of the two out",
        )
    return values, common_flags.list_files(values.input_file, "input_file")


def read_base(values: flags.FlagValues) -> list[str]:
    """Reads the vocabulary to extend and checks that it has room."""
    tokens = list(vocabulary.read_vocabulary(values.base_vocab))
    slots = len(vocabulary_slots.unused_slots(tokens))
    if slots < values.num_new_tokens:
        raise UserError(
            f"{slots} [unusedN] slots for {values.num_new_tokens} words",
            path=values.base_vocab,
            expected=f"--num_new_tokens={slots} at the most"
            if slots
            else "a vocabulary with [unusedN] slots",
        )
    if values.do_lower_case != tokenization.looks_lower_case(tokens):
        say(
            f"warning: {values.base_vocab} does not look as if made with "
            f"--do_lower_case={values.do_lower_case}"
        )
    return tokens


def extend(
    base: list[str], counts: word_counts.Counts, values: flags.FlagValues
) -> tuple[list[str], int]:
    """Puts the words that are split most into unused slots.

    Returns:
        the tokens and how many are new.
    """
    words = vocabulary_fit.missing_words(
        counts.words, base, values.min_frequency
    )[: values.num_new_tokens]
    if not words:
        raise UserError(
            "no word to add",
            path=values.base_vocab,
            expected="words that it splits, seen "
            f"--min_frequency={values.min_frequency} times",
        )
    if len(words) < values.num_new_tokens:
        say(f"warning: the corpus has only {len(words):,} words to add")
    return vocabulary_slots.place_words(base, words)[0], len(words)


def learn(counts: word_counts.Counts, values: flags.FlagValues) -> list[str]:
    """Learns a new vocabulary."""
    tokens = vocabulary_learner.learn_vocabulary(
        counts.words,
        values.vocab_size,
        min_frequency=values.min_frequency,
        num_unused=values.num_unused,
        limit_alphabet=values.limit_alphabet,
    )
    if len(tokens) < values.vocab_size:
        say(
            f"warning: {len(tokens):,} tokens, not {values.vocab_size:,}: "
            "the corpus has no more pairs to merge"
        )
    return tokens


def write(path: str, tokens: list[str]) -> None:
    """Writes the vocabulary, whole or not at all."""
    try:
        vocabulary.write_vocabulary(path, tokens)
    except OSError as error:
        raise UserError(
            f"cannot be written: {error.strerror}", path=path
        ) from None


def report(
    counts: word_counts.Counts, tokens: list[str], base: list[str] | None
) -> None:
    """Prints how the vocabulary fits text that it was not learned from."""
    where = "held out"
    if not counts.is_held_out:
        where = "the text itself, too short to hold lines out"
    if base:
        before = vocabulary_fit.measure(counts.held_out, base)
        print(f"{where}, before: {before}")
        where += ", after"
    print(f"{where}: {vocabulary_fit.measure(counts.held_out, tokens)}")


def main(argv: list[str]) -> None:
    """Runs the script."""
    values, files = read_flags(argv)
    base = read_base(values) if values.base_vocab else None
    num_processes = values.num_processes or os.cpu_count() or 1
    counts = word_counts.count_corpus(
        files, values.do_lower_case, num_processes, values.strip_accents
    )
    if counts.dropped_below:
        say(
            "the corpus has more different words than are counted at once: "
            f"some seen less than {counts.dropped_below:,} times were dropped"
        )
    if base:
        tokens, new = extend(base, counts, values)
        wrote = f"{len(tokens):,} tokens, {new:,} of them new"
    else:
        tokens = learn(counts, values)
        wrote = f"{len(tokens):,} tokens"
    write(values.output_file, tokens)
    report(counts, tokens, base)
    print(
        f"wrote {wrote}, learned from {counts.words.total():,} words "
        f"({len(counts.words):,} different), to {values.output_file}"
    )


if __name__ == "__main__":
    sys.exit(common_flags.run(main, sys.argv))
