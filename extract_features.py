r"""Extracts contextual embeddings of tokens or lines from a checkpoint.

    python extract_features.py --input_file=lines.txt \
        --output_file=vectors.jsonl --init_checkpoint=bert_model.ckpt

The config and the vocabulary are found beside the checkpoint.

A line is a text, or a pair: `first ||| second`. For sentence embeddings:

    --layers=-1 --pooling=mean --normalize --output_format=npz
"""

import sys

from bert.common import flags
from bert.common import main as common_main
from bert.runs import feature_extraction
from bert.tasks.features.settings import Settings, check


def main(argv: list[str]) -> None:
    """Runs the script."""
    extraction = check(flags.parse(argv, Settings, __doc__))
    print(feature_extraction.write(extraction))


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
