r"""Compiles pre-training steps for devices that are not there.

    python -m benchmarks.ahead_of_time PYTHON DEVICE COUNT \
        [CONFIG.json B S P [PRECISION [remat] [deterministic] [parts=N]]]

TensorFlow makes one program of the whole step of a replica: forward, backward,
dropout, all-reduce, clipping, update. PYTHON belongs to the environment that
`make tpu` or `make gpu` installs, whose compiler compiles it for one of COUNT
devices, `v5e` or `h100`; B is the batch of all of them. Prints one JSON line
for each step, by default for `STEPS`. Nothing runs on such a device.
"""

import json
import os
import subprocess
import sys
import tempfile
from unittest import mock

import tensorflow as tf

from benchmarks import flops, pretraining_step, program_text
from bert.modeling import precision as precisions
from bert.modeling.config import BertConfig

_COMPILER = os.path.join(
    os.path.dirname(__file__), "peers", "ahead_compiler.py"
)
# Platform, topology, and of one device in public data sheets: bfloat16 FLOPs
# and bytes of memory a second.
DEVICES = {
    "v5e": ("tpu", "v5e:2x4", 197e12, 819e9),
    "h100": ("cuda", "1x1x8", 989e12, 3350e9),
}
_BASE, _LARGE = "bert/configs/bert_base.json", "bert/configs/bert_large.json"
# Config, B of a device, S, P, and options.
STEPS = [
    (_BASE, 32, 128, 20),
    (_BASE, 8, 512, 77),
    (_LARGE, 32, 128, 20),
    (_LARGE, 8, 512, 77),
    (_LARGE, 32, 512, 77),
    (_LARGE, 32, 512, 77, "remat"),
    (_LARGE, 32, 512, 77, "parts=4"),
]


class Replica:
    """One of several replicas that run the same program.

    It stands in for the context of a strategy: the program itself tells the
    replicas apart, and sums over them.
    """

    def __init__(self, count: int):
        from tensorflow.compiler.tf2xla.ops import gen_xla_ops  # not public

        self._ops, self.num_replicas_in_sync = gen_xla_ops, count

    @property
    def replica_id_in_sync_group(self):
        """int32 scalar."""
        return self._ops.xla_replica_id()

    def all_reduce(self, operation, tensors):
        """Sums over the replicas."""
        assert operation == tf.distribute.ReduceOp.SUM
        group = tf.constant([list(range(self.num_replicas_in_sync))])
        return tf.nest.map_structure(
            lambda x: self._ops.xla_all_reduce(
                input=x,
                group_assignment=group,
                reduce_op="Add",
                mode="CrossReplica",
            ),
            tensors,
        )


def program(
    config: BertConfig, sizes, precision: str, count: int = 1, **options
) -> bytes:
    """Returns the step of a replica as a serialized HLO module.

    Args:
        config: sizes of the network.
        sizes: B, S and P.
        precision: precision of the network.
        count: number of replicas.
        options: of `pretraining_step.make_training`.
    """
    with precisions.computing_in(precision):
        training, data = pretraining_step.make_steps(
            config, *sizes, use_xla=True, **options
        )

    @tf.function(jit_compile=True, autograph=False)
    def step(batch):
        here = lambda: Replica(count)  # noqa: E731
        with mock.patch.object(tf.distribute, "get_replica_context", here):
            return training._replica_step(batch)

    return step.experimental_get_compiler_ir(next(data))(stage="hlo_serialized")


def compile_for(
    python: str, device: str, count: int, hlo: bytes
) -> tuple[dict, str]:
    """Compiles a module in the compiler's environment.

    Args:
        python: Python of that environment.
        device: name in `DEVICES`.
        count: number of devices.
        hlo: module from `program`.

    Returns:
        the compiler's figures, and the text of the optimized program.
    """
    platform, topology, *_ = DEVICES[device]
    with tempfile.TemporaryDirectory() as folder:
        module = os.path.join(folder, "module.hlo")
        optimized = os.path.join(folder, "optimized.txt")
        with open(module, "wb") as file:
            file.write(hlo)
        command = [python, _COMPILER, module, platform, topology, str(count)]
        printed = subprocess.run(
            [*command, optimized],
            stdout=subprocess.PIPE,
            text=True,
            env={
                **os.environ,
                "TPU_SKIP_MDS_QUERY": "1",
                "JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1",
            },
        )
        printed.check_returncode()
        with open(optimized, encoding="utf-8") as file:
            text = file.read()
    return json.loads(printed.stdout.splitlines()[-1]), text


def chosen_steps(given: list[str], count: int = 1) -> list[tuple]:
    """The step that a command line names, or `STEPS`.

    Args:
        given: CONFIG.json B S P [PRECISION [WORD ...]], or nothing.
        count: number of devices that share the batch of `STEPS`.

    Returns:
        config, (B, S, P), precision and words of each step.
    """
    if given:
        path, *sizes = given[:4]
        precision, *words = given[4:] or ["bfloat16"]
        return [(path, tuple(map(int, sizes)), precision, words)]
    return [
        (path, (count * b, s, p), "bfloat16", words)
        for path, b, s, p, *words in STEPS
    ]


def describe(path: str, sizes, precision: str, words: list[str]) -> str:
    """Names a step of `chosen_steps`."""
    batch, length, masks = sizes
    return (
        f"a step of {path}, B={batch} S={length} P={masks}, "
        f"{' '.join([precision, *words])}"
    )


def step_options(words: list[str]) -> dict:
    """Options of `pretraining_step.make_training`.

    Args:
        words: `remat`, `deterministic`, `parts=N`.
    """
    parts = [int(x[6:]) for x in words if x.startswith("parts=")]
    return {
        "remat": "remat" in words,
        "deterministic": "deterministic" in words,
        "accumulation_steps": parts[0] if parts else 1,
    }


def measure(
    python: str, device: str, count: int, path: str, sizes, precision, words
) -> dict:
    """Figures of a step.

    Args:
        python, device, count: as for `compile_for`.
        path: config of the network.
        sizes: B of all devices, S and P.
        precision: precision of the network.
        words: of `step_options`.
    """
    config = BertConfig.from_json_file(path)
    settings = step_options(words)
    parts = settings["accumulation_steps"]
    hlo = program(config, sizes, precision, count, **settings)
    figures, text = compile_for(python, device, count, hlo)
    _, _, rate, bandwidth = DEVICES[device]
    done = figures.pop("product_flops") * parts  # a loop over the parts
    share = sizes[0] // count // parts
    scores = share * config.num_attention_heads * sizes[1] ** 2
    return {
        "what": describe(path, sizes, precision, words),
        **figures,
        "gigabytes": round(
            (figures["argument_bytes"] + figures["temporary_bytes"]) / 1e9, 2
        ),
        "teraflop": round(done / 1e12, 4),
        "teraflop_by_formula": round(
            flops.executed(config, sizes[0] // count, *sizes[1:]) / 1e12, 4
        ),
        # Every product at the peak rate; weights and moments read and written.
        "least_milliseconds": round(
            1e3 * max(done / rate, 2 * figures["alias_bytes"] / bandwidth), 1
        ),
        "all_reduces": program_text.all_reduces(text),
        **program_text.check(
            text, config.hidden_size * config.intermediate_size, scores
        ),
        "tensorflow": tf.__version__,
    }


def main() -> None:
    """Prints one JSON line for each step."""
    python, device, count, *given = sys.argv[1:]
    count = int(count)
    for step in chosen_steps(given, count):
        print(json.dumps(measure(python, device, count, *step)), flush=True)


if __name__ == "__main__":
    main()
