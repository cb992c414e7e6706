r"""Prepares a corpus: one sentence per line, a blank line between documents.

    python prepare_corpus.py --input_file='articles.jsonl.gz,books' \
        --output_file=corpus.txt.gz

Inputs are files of plain text or JSON lines, also compressed as .gz, or folders
of such files. The result does not depend on the number of processes.
"""

import sys

from bert.common import command_line
from bert.common import main as common_main
from bert.common.errors import printable
from bert.common.progress import counted
from bert.data.corpus import preparation
from bert.data.corpus.preparation import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = command_line.parse(argv, Settings, __doc__)

    files = preparation.list_inputs(settings)
    for path, counts, size in preparation.prepare(settings, files):
        print(
            f"wrote {counted(counts.sentences, 'sentence')} of "
            f"{counted(counts.documents, 'document')} "
            f"({size / 1e6:.1f} MB) to {printable(path)}"
        )


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
