"""This project in benchmarks.peers_in_turns, with the same command line.

    python -m benchmarks.own_step TASK CONFIG.json PRECISION MODE B S P

TASK is `train` or `infer`, PRECISION `float32` or `bfloat16`, MODE one of
`fused`, `remat` and `xla`.
"""

import sys

import keras
import tensorflow as tf

from benchmarks import pretraining_step
from benchmarks.peers.batches import encoder_batch
from benchmarks.peers.serve import serve
from bert.modeling import networks, task_heads
from bert.modeling.config import BertConfig


def make(task, path, precision, mode, *sizes):
    """Returns the function to run, and versions."""
    assert mode in ("fused", "remat", "xla"), mode
    if precision == "bfloat16":
        keras.config.set_dtype_policy("mixed_bfloat16")
    config = BertConfig.from_json_file(path)
    versions = {"tensorflow": tf.__version__, "keras": keras.__version__}
    if task == "infer":
        model = networks.build(config, task_heads.CLASSIFIER, 2)
        call = tf.function(
            lambda x: tf.reduce_sum(model(x, training=False)["logits"]),
            jit_compile=mode == "xla",
        )

        def infer(batch_size: int, length: int) -> float:
            arrays = encoder_batch(config.vocab_size, batch_size, length)
            return call({k: tf.constant(v) for k, v in arrays.items()})

        return infer, versions
    training, data = pretraining_step.make_steps(
        config,
        *sizes,
        remat=mode == "remat",
        use_xla=mode == "xla",
    )
    one = tf.constant(1)

    def step() -> float:
        sums = dict(zip(training.sum_names, training.train(data, one)[0]))
        return sum(
            sums[f"{name}_loss"] / sums[f"{name}_weight"]
            for name in training.objective.losses
        )

    return step, versions


if __name__ == "__main__":
    words = sys.argv[1:]
    serve(
        lambda: make(*words[:4], *map(int, words[4:])),
        pretraining_step.gpu_peak,
    )
