"""Corpus -> WordPiece vocabulary.

    python create_vocab.py --input_file='wiki/*.txt.gz' \
        --output_file=vocab.txt --vocab_size=30522

Words are split exactly as the tokenizer splits them. The same corpus and
flags give the same file.
"""

import sys

from absl import flags

import common_flags
import text_flags
from data import corpus, tokenization, vocabulary
from errors import UserError
from progress import Progress, say


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
    for name, default, lowest, meaning in (
        ("vocab_size", 30522, 1, "Tokens, special and unused ones included."),
        ("min_frequency", 2, 1, "Pieces are merged if seen so often."),
        ("num_unused", 99, 0, "[unusedN] slots after [PAD]."),
        ("limit_alphabet", 1000, 1, "So many characters, the most frequent."),
    ):
        flags.DEFINE_integer(
            name, default, meaning, flag_values=values, lower_bound=lowest
        )


def read_flags(argv: list[str]) -> tuple[flags.FlagValues, list[str]]:
    """Reads and checks the command line: (flags, input files)."""
    values = common_flags.parse(argv, define_flags, __doc__)
    text_flags.check_output_file(values.output_file, "output_file")
    return values, common_flags.list_files(values.input_file, "input_file")


def count_words(files: list[str], do_lower_case: bool):
    """Counts the words of all files, as the tokenizer splits them."""
    text = corpus.scan(files)
    total = text.document_bytes.sum() / 1e6
    say(f"{total:.1f} MB in {len(text.document_bytes):,} documents")
    progress = Progress("counting words", total, "MB")

    def lines():
        done = 0
        for path in files:
            for line in corpus.lines(path):
                done += len(line)
                progress.update(done / 1e6)
                yield line

    tokenizer = tokenization.BasicTokenizer(do_lower_case)
    return vocabulary.count_words(lines(), tokenizer.tokenize)


def main(argv: list[str]) -> None:
    """Runs the script."""
    values, files = read_flags(argv)
    words = count_words(files, values.do_lower_case)
    tokens = vocabulary.learn_vocabulary(
        words,
        values.vocab_size,
        min_frequency=values.min_frequency,
        num_unused=values.num_unused,
        limit_alphabet=values.limit_alphabet,
    )
    try:
        vocabulary.write_vocabulary(values.output_file, tokens)
    except OSError as error:
        raise UserError(
            f"cannot be written: {error.strerror}", path=values.output_file
        ) from None
    if len(tokens) < values.vocab_size:
        say(
            f"warning: {len(tokens):,} tokens, not {values.vocab_size:,}: "
            "the corpus has no more pairs to merge"
        )
    print(
        f"wrote {len(tokens):,} tokens, learned from {words.total():,} words "
        f"({len(words):,} different), to {values.output_file}"
    )


if __name__ == "__main__":
    sys.exit(common_flags.run(main, sys.argv))
