r"""Fine-tunes BERT to text embeddings for similarity and search.

    python run_similarity.py --train_file=train.csv --eval_file=dev.csv \
        --do_train --do_eval --init_checkpoint=bert --output_dir=similarity

Files are tables with the columns text, text_b and score. With --loss=ranking
they have an anchor and a positive text per row, without scores.
"""

import sys

from bert.common import command_line
from bert.runs import driver, signals
from bert.tasks.similarity import inputs
from bert.tasks.similarity.settings import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    driver.run(command_line.parse(argv, Settings, __doc__), inputs.read)


if __name__ == "__main__":
    sys.exit(signals.run(main))
