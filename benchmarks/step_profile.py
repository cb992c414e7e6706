r"""Profile of a pre-training step, by TensorFlow's profiler.

    python -m benchmarks.step_profile \
        [bert/configs/bert_small.json [B S P [bfloat16]]]

Times are milliseconds of a step, summed over threads, with the number of calls.
Operations inside compiled programs, which are the fused operations and the
update of the optimizer, have the names that XLA gives them.
"""

import collections
import glob
import re
import sys
import tempfile

import tensorflow as tf
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from benchmarks import pretraining_step
from bert.modeling import precision
from bert.modeling.config import BertConfig

_STEPS = 2  # in a profile
_SMALLEST = 0.004  # share of the time of an operation that is listed

# Operations that only contain others, or wait for them.
_AROUND = re.compile("Execut|TFE_|Block|Kernel|FunctionRun|Await|_train|train")


def times(folder: str) -> dict[str, list]:
    """Reads a profile: kind of operation -> seconds and number of calls."""
    seconds: collections.Counter = collections.Counter()
    calls: collections.Counter = collections.Counter()
    for path in glob.glob(f"{folder}/**/*.xplane.pb", recursive=True):
        with open(path, "rb") as file:
            space = xplane_pb2.XSpace.FromString(file.read())
        for plane in space.planes:
            names = plane.event_metadata
            for line in plane.lines:
                for event in line.events:
                    if kind := _kind(names[event.metadata_id].name):
                        seconds[kind] += event.duration_ps / 1e12
                        calls[kind] += 1
    return {kind: [x, calls[kind]] for kind, x in seconds.most_common()}


def _kind(name: str) -> str | None:
    if "/" in name and ":" in name:
        return name.rsplit(":", 1)[1]
    return None if _AROUND.search(name) else name.partition(".")[0]


def measure(
    config: BertConfig,
    batch_size: int,
    length: int,
    masks: int,
    kind: str = "float32",
) -> dict:
    """Profiles steps, after as many to compile and warm up."""
    with precision.computing_in(kind):
        training, data = pretraining_step.make_steps(
            config, batch_size, length, masks
        )
    count = tf.constant(_STEPS)
    training.train(data, count)
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder):
            training.train(data, count).numpy()
        found = times(folder)
    total = sum(seconds for seconds, _ in found.values()) / _STEPS
    return {
        "what": f"profile of a step, B={batch_size} S={length} P={masks}",
        "precision": kind,
        "milliseconds": round(1e3 * total, 1),
        "milliseconds_and_calls": {
            name: [round(1e3 * seconds / _STEPS, 1), calls // _STEPS]
            for name, (seconds, calls) in found.items()
            if seconds / _STEPS > _SMALLEST * total
        },
        "tensorflow": tf.__version__,
    }


if __name__ == "__main__":
    pretraining_step.print_figures(
        lambda *sizes: measure(*sizes, *sys.argv[5:6]),
        "bert/configs/bert_small.json",
    )
