"""Speed of packed pre-training rows and of unpacked ones, in turns.

    python -m benchmarks.packing UNPACKED.tfrecord PACKED.tfrecord \
        [CONFIG.json [B [STEPS]]]

create_pretraining_data.py wrote both files from the same text with the same
lengths, with and without --pack_sequences. Padding is not counted as tokens.
The time that a step waits for its batch is reported separately.
"""

import json
import statistics
import sys
import time

import tensorflow as tf

from benchmarks import pretraining_step
from bert.data.records import reader
from bert.data.records.shards import Records
from bert.modeling import losses
from bert.modeling.config import BertConfig

RUNS = 3


class FileTraining:
    """Training on one file.

    Args:
        path: path of the records.
        config: sizes of the network.
        batch_size: B.
    """

    def __init__(self, path: str, config: BertConfig, batch_size: int):
        records = Records.open(path)
        count = records.shards[0].entry.records
        self._batches = iter(
            reader.training_batches(
                [path], count, records.schema, batch_size, 1, 0
            )
        )
        self._steps = pretraining_step.make_training(
            config, packed=records.is_packed
        )
        self._slots = batch_size * records.max_seq_length
        self.run(2)

    def run(self, steps: int) -> dict[str, float]:
        """Trains, and returns tokens/s, the share of tokens and of waiting."""
        tokens = waited = trained = 0.0
        for _ in range(steps):
            start = time.perf_counter()
            batch = next(self._batches)
            waited += time.perf_counter() - start
            tokens += float(losses.batch_tokens(batch))
            data = iter(tf.data.Dataset.from_tensors(batch))
            start = time.perf_counter()
            self._steps.train(data, tf.constant(1)).numpy()
            trained += time.perf_counter() - start
        return {
            "tokens_per_second": tokens / (waited + trained),
            "full": tokens / (steps * self._slots),
            "waited": waited / (waited + trained),
        }


def measure(
    unpacked: str,
    packed: str,
    config: BertConfig,
    batch_size: int = 8,
    steps: int = 5,
    runs: int = RUNS,
) -> dict:
    """Times both in turns.

    Args:
        unpacked, packed: paths of the records.
        config: sizes of the network.
        batch_size: B.
        steps: number of steps of a turn.
        runs: number of turns of each.
    """
    sides = [
        FileTraining(path, config, batch_size) for path in (unpacked, packed)
    ]
    found = [[side.run(steps) for side in sides] for _ in range(runs)]
    ratios = [b["tokens_per_second"] / a["tokens_per_second"] for a, b in found]

    def median(side: int, name: str) -> float:
        return round(statistics.median(turn[side][name] for turn in found), 4)

    return {
        "what": f"packed rows, B={batch_size}",
        "unpacked": {name: median(0, name) for name in found[0][0]},
        "packed": {name: median(1, name) for name in found[0][1]},
        "ratio": round(statistics.median(ratios), 2),
        "min_max": [round(f(ratios), 2) for f in (min, max)],
        "tensorflow": tf.__version__,
    }


def main() -> None:
    """Prints one JSON line."""
    unpacked, packed, *rest = sys.argv[1:]
    path = rest.pop(0) if rest else "bert/configs/bert_mini.json"
    config = BertConfig.from_json_file(path)
    print(
        json.dumps(
            {
                "config": path,
                **measure(unpacked, packed, config, *map(int, rest)),
            }
        )
    )


if __name__ == "__main__":
    main()
