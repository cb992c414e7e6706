"""Profile of a pre-training step, by TensorFlow's profiler.

    python -m benchmarks.step_profile [bert/configs/bert_small.json [B S P]]

Shares are shares of the running time of operations, summed over threads.
Operations inside compiled programs, which are the fused operations and the
update of the optimizer, have the names that XLA gives them.
"""

import collections
import glob
import re
import tempfile

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from benchmarks import pretraining_step
from bert.modeling.config import BertConfig

# Operations that only contain others, or wait for them.
_AROUND = re.compile("Execut|TFE_|Block|Kernel|FunctionRun|Await|_train|train")


def shares(folder: str) -> dict[str, float]:
    """Kind of operation -> share of the time, from a profile's folder."""
    times: collections.Counter = collections.Counter()
    for path in glob.glob(f"{folder}/**/*.xplane.pb", recursive=True):
        with open(path, "rb") as file:
            space = xplane_pb2.XSpace.FromString(file.read())
        for plane in space.planes:
            names = plane.event_metadata
            for line in plane.lines:
                for event in line.events:
                    kind = _kind(names[event.metadata_id].name)
                    times[kind] += event.duration_ps if kind else 0
    total = sum(times.values())
    return {kind: time / total for kind, time in times.most_common() if time}


def _kind(name: str) -> str | None:
    if "/" in name and ":" in name:
        kind = name.rsplit(":", 1)[1]
        return "matrix products" if "MatMul" in kind else kind
    if _AROUND.search(name):
        return None
    return "compiled programs"


def measure(
    config: BertConfig, batch_size: int, length: int, masks: int
) -> dict:
    """Profiles two steps, after two to compile and warm up."""
    training, data = pretraining_step.make_steps(
        config, batch_size, length, masks
    )
    two = tf.constant(2)
    training.train(data, two)
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder):
            training.train(data, two).numpy()
        found = shares(folder)
    return {
        "what": f"profile of a step, B={batch_size} S={length} P={masks}",
        "shares": {
            kind: round(share, 4)
            for kind, share in found.items()
            if share > 0.002
        },
        "tensorflow": tf.__version__,
    }


if __name__ == "__main__":
    pretraining_step.print_figures(measure, "bert/configs/bert_small.json")
