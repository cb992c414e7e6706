"""Runs a script on small partitions and chunks, in a process of its own.

    python -c "from tests.helpers import small_parts; small_parts.main()" \
        create_vocab --input_file=...

So a small corpus has work for several processes.
"""

import importlib
import sys

from bert.common import main as common_main
from bert.data.corpus import documents, raw_text, word_counts

PROGRAM = "from tests.helpers import small_parts; small_parts.main()"


def main() -> None:
    """Runs the script that the command line names, and ends the process."""
    documents.PARTITION_BYTES = 20_000
    word_counts.CHUNK_SIZE = raw_text._CHUNK = 10_000
    script = importlib.import_module(sys.argv[1])
    sys.exit(common_main.run(script.main, sys.argv[1:]))
