"""Speed of extract_features in length buckets and padded to the maximum.

    python -m benchmarks.features LINES MODEL_FOLDER [MAX_SEQ_LENGTH]

MODEL_FOLDER holds a checkpoint, bert_config.json and vocab.txt. Both modes run
in turns (A B A B ...) over the same lines; the output is the mean of the token
vectors.
"""

import json
import statistics
import sys
import tempfile
import time

import tensorflow as tf

from bert.common import flags
from bert.data import bucketing
from bert.tasks.features import run
from bert.tasks.features.settings import Settings, check

RUNS = 3


def measure(lines: str, model: str, length: int, runs: int = RUNS) -> dict:
    """Times both modes.

    Args:
        lines: path of the input file.
        model: folder of the model.
        length: maximum sequence length.
        runs: number of runs of each mode.
    """
    by_length = bucketing.bucket_lengths
    modes = {"by length": by_length, "padded": lambda longest: [longest]}
    seconds: dict[str, list[float]] = {mode: [] for mode in modes}
    with tempfile.TemporaryDirectory() as folder:
        settings = flags.parse(
            [
                "extract_features.py",
                f"--input_file={lines}",
                f"--output_file={folder}/vectors.npz",
                f"--vocab_file={model}/vocab.txt",
                f"--bert_config_file={model}/bert_config.json",
                f"--init_checkpoint={model}",
                f"--max_seq_length={length}",
                "--layers=-1",
                "--pooling=mean",
            ],
            Settings,
            "",
        )
        extraction = check(settings)
        for _ in range(runs):
            for mode, lengths in modes.items():
                bucketing.bucket_lengths = lengths
                start = time.perf_counter()
                reader = run.Reader(extraction)
                count = sum(1 for _ in run.extract(extraction, reader))
                seconds[mode].append(time.perf_counter() - start)
        bucketing.bucket_lengths = by_length
    ratios = [b / a for a, b in zip(seconds["by length"], seconds["padded"])]
    return {
        "what": "extract_features",
        "lines": count,
        "max_seq_length": length,
        "seconds": {
            mode: round(statistics.median(s), 2) for mode, s in seconds.items()
        },
        "ratio": round(statistics.median(ratios), 2),
        "min_max": [round(min(ratios), 2), round(max(ratios), 2)],
        "tensorflow": tf.__version__,
    }


def main() -> None:
    """Prints one JSON line."""
    lines, model, *length = sys.argv[1:]
    print(json.dumps(measure(lines, model, int(length[0]) if length else 128)))


if __name__ == "__main__":
    main()
