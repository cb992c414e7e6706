"""Predicts the most probable words for [MASK] in sentences.

    echo 'the capital of france is [MASK] .' |
        python fill_mask.py --init_checkpoint=run

--init_checkpoint is a prefix or a folder. The config and the vocabulary are
found beside it.
"""

import sys

from bert.common import command_line
from bert.common import main as common_main
from bert.inference import mask_filling
from bert.tasks.fill_mask.settings import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    mask_filling.print_words(command_line.parse(argv, Settings, __doc__))


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
