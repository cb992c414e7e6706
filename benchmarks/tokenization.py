"""Speed of the tokenizer beside that of Hugging Face, one thread each.

    python -m benchmarks.tokenization CORPUS VOCABULARY

Both compute the ids of every line. Runs alternate, and each of ours starts with
an empty cache of words.
"""

import json
import os
import statistics
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import tensorflow as tf
import tokenizers

from data.corpus import documents
from data.text import fast_tokenization


def measure(lines: list[str], vocab_file: str, runs: int = 5) -> dict:
    """Measures MB/s of both, without creating the tokenizers."""
    megabytes = sum(len(line.encode()) for line in lines) / 1e6
    pairs = []
    for _ in range(runs):
        ours = fast_tokenization.FastTokenizer(vocab_file)
        peer = tokenizers.BertWordPieceTokenizer(vocab_file, lowercase=True)
        start = time.perf_counter()
        ours.ids_of_lines(lines)
        middle = time.perf_counter()
        # Its fastest call, which makes no offsets.
        encoded = peer._tokenizer.encode_batch_fast(
            lines, add_special_tokens=False
        )
        [line.ids for line in encoded]
        end = time.perf_counter()
        pairs.append((megabytes / (middle - start), megabytes / (end - middle)))
    medians = [statistics.median(rates) for rates in zip(*pairs)]
    ratios = sorted(a / b for a, b in pairs)
    return {
        "what": "text to ids, one thread",
        "megabytes": round(megabytes, 2),
        "megabytes_per_second": round(medians[0], 2),
        "peer_megabytes_per_second": round(medians[1], 2),
        "ratio": round(statistics.median(ratios), 2),
        "ratio_min_max": [round(ratios[0], 2), round(ratios[-1], 2)],
        "tokenizers": tokenizers.__version__,
        "python": sys.version.split()[0],
    }


def main() -> None:
    """Prints one JSON line."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    lines = list(documents.lines(sys.argv[1]))
    print(json.dumps(measure(lines, sys.argv[2])))


if __name__ == "__main__":
    main()
