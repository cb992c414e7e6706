r"""Extracts contextual embeddings of tokens or lines from a checkpoint.

    python extract_features.py --input_file=lines.txt \
        --output_file=vectors.jsonl --init_checkpoint=bert_model.ckpt

The config and the vocabulary are found beside the checkpoint.

A line is a text, or a pair: `first ||| second`. For sentence embeddings:

    --layers=-1 --pooling=mean --normalize --output_file=vectors.npy

JSON lines (.jsonl) and tables (.csv, .tsv, .parquet) are read as by predict.py.
The output is .jsonl, .npz, .npy, or .parquet with the columns id and embedding.

Large files are divided into partitions, in several processes or with Apache
Beam. A killed run continues.
"""

import sys

from bert.common import command_line
from bert.common import main as common_main
from bert.common.jobs import any_runner, runners
from bert.runs import feature_extraction
from bert.tasks.features.settings import Settings, check


def main(argv: list[str]) -> None:
    """Runs the script."""
    argv, beam_options = runners.split_options(argv)
    settings = command_line.parse(argv, Settings, __doc__)
    any_runner.check(settings, beam_options)
    print(feature_extraction.write(check(settings), beam_options))


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
