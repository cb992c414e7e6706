"""Growth of the time of a step with B, S, L and H, beside its FLOPs.

    python -m benchmarks.scaling [AXIS ...]

One size is changed at a time, from B=16, S=128, L=4 and H=256. Each line has
the time of the step, its nominal FLOPs, and the ratios of both to the first
line of the axis.
"""

import json
import statistics
import sys
import time

import tensorflow as tf

from benchmarks import flops, pretraining_step
from bert.modeling.config import BertConfig

START = {"B": 16, "S": 128, "L": 4, "H": 256}
AXES = {
    "B": (8, 16, 32, 64),
    "S": (64, 128, 256, 512),
    "L": (2, 4, 8),
    "H": (128, 256, 512),
}
VOCABULARY = 30522


def config_of(
    sizes: dict[str, int], vocab_size: int = VOCABULARY
) -> BertConfig:
    """A network with the proportions of the published ones."""
    return BertConfig(
        vocab_size=vocab_size,
        hidden_size=sizes["H"],
        num_hidden_layers=sizes["L"],
        num_attention_heads=max(1, sizes["H"] // 64),
        intermediate_size=4 * sizes["H"],
        type_vocab_size=2,
    )


def measure(
    config: BertConfig, batch_size: int, length: int, runs: int = 5
) -> dict:
    """Measures seconds and FLOPs of a step with 15 % masked tokens."""
    masks = max(1, round(0.15 * length))
    training, data = pretraining_step.make_steps(
        config, batch_size, length, masks
    )
    seconds = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        training.train(data, tf.constant(1)).numpy()
        seconds.append(time.perf_counter() - start)
    return {
        "seconds": statistics.median(seconds[1:]),
        "gflop": flops.nominal(config, batch_size, length, masks) / 1e9,
    }


def main() -> None:
    """Prints a JSON line for each size."""
    for axis in sys.argv[1:] or AXES:
        first = None
        for size in AXES[axis]:
            sizes = {**START, axis: size}
            found = measure(config_of(sizes), sizes["B"], sizes["S"])
            first = first or found
            line = {"what": f"step against {axis}", **sizes}
            for name, value in found.items():
                line[name] = round(value, 4)
                line[f"{name}_beside_first"] = round(value / first[name], 2)
            rate = found["gflop"] / found["seconds"]
            line["gflop_per_second"] = round(rate, 1)
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
