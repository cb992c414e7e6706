"""Cost of a checkpoint in the thread of training, and its memory.

    python -m benchmarks.checkpoint_save [CONFIG.json [SAVES]]

Weights and moments of a network are saved while steps on a small batch go on.
A step assigns every variable, so that the copy that is written is complete.
"""

import json
import resource
import sys
import tempfile
import time

import keras
import tensorflow as tf

from benchmarks.pretraining_step import make_steps
from bert.modeling import checkpoints
from bert.modeling.config import BertConfig
from bert.training.saver import Saver

SIZES = (2, 16, 2)  # B, S and P


def measure(config: BertConfig, saves: int, folder: str) -> dict:
    """Measures seconds and memory of checkpoints and of the steps beside them.

    Args:
        config: sizes of the network.
        saves: number of checkpoints.
        folder: where they are written.
    """
    training, data = make_steps(config, *SIZES)
    named = checkpoints.model_variables(training.model)
    values = {**named, **training.optimizer.named_slots(named)}
    times = {"step": [], "step_while_saving": [], "save": [], "written": []}

    def step(name):
        start = time.perf_counter()
        training.train(data, tf.constant(1)).numpy()
        times[name].append(time.perf_counter() - start)

    for _ in range(5):
        step("step")
    peak = _peak_gb()
    saver = Saver(folder, 1)
    for number in range(saves):
        start = time.perf_counter()
        saver.save_in_background(number, values, {})
        times["save"].append(time.perf_counter() - start)
        step("step_while_saving")
        saver.wait()
        times["written"].append(time.perf_counter() - start)
    parameters = sum(value.numpy().size for value in values.values())
    return {
        "checkpoint_gb": round(4 * parameters / 1e9, 3),
        "peak_gb_of_steps": round(peak, 3),
        "more_gb_with_saves": round(_peak_gb() - peak, 3),
        "seconds": {
            name: [round(x, 4) for x in some] for name, some in times.items()
        },
        "tensorflow": tf.__version__,
        "keras": keras.__version__,
    }


def _peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10 / 1e3


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "bert/configs/bert_base.json"
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    with tempfile.TemporaryDirectory() as scratch:
        found = measure(BertConfig.from_json_file(path), count, scratch)
    print(json.dumps({"config": path, **found}))
