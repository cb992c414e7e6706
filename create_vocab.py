r"""Learns a WordPiece vocabulary from a corpus.

    python create_vocab.py --input_file='wiki/*.txt.gz' \
        --output_file=vocab.txt --vocab_size=30522

Words are split exactly as by the tokenizer. The same corpus and flags give the
same file. With `--base_vocab`, the words that a published vocabulary splits
into the most tokens fill its `[unusedN]` slots; other ids do not change.
"""

import sys

from bert.common import command_line, outputs, storage
from bert.common import main as common_main
from bert.common.errors import printable
from bert.data.corpus import documents, vocabulary_creation
from bert.data.corpus.vocabulary_creation import Settings
from bert.data.text import vocabulary


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = command_line.parse(argv, Settings, __doc__)

    files = storage.list_files(settings.input_file, "input_file")
    documents.check_names(files)
    read = [*files, settings.base_vocab] if settings.base_vocab else files
    outputs.check_no_input([settings.output_file], read)

    # All paths are checked before the corpus is read.
    base = vocabulary_creation.read_base(settings)
    counts = vocabulary_creation.count_words(settings, files)
    if base:
        tokens, new = vocabulary_creation.extend(base, counts, settings)
        wrote = f"{len(tokens):,} tokens, {new:,} of them new"
    else:
        tokens = vocabulary_creation.learn(counts, settings)
        wrote = f"{len(tokens):,} tokens"

    vocabulary.write_vocabulary(settings.output_file, tokens)
    for line in vocabulary_creation.report(counts, tokens, base):
        print(printable(line))
    path = printable(settings.output_file)
    print(
        f"wrote {wrote}, learned from {counts.words.total():,} words "
        f"({len(counts.words):,} different), to {path}"
    )


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
