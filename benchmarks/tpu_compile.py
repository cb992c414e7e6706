r"""Compiles a pre-training step for a TPU that is not there.

    python -m benchmarks.tpu_compile PYTHON \
        [TOPOLOGY [CONFIG.json [B S P [PRECISION]]]]

TensorFlow compiles the whole step into one program: forward, backward, dropout,
clipping, update. PYTHON belongs to the environment that `make tpu` installs,
where the compiler of libtpu compiles the program for a core of TOPOLOGY,
`v5e:2x2`, and reports the memory that it needs. Nothing runs on a TPU.
"""

import json
import os
import subprocess
import sys
import tempfile

import tensorflow as tf

from benchmarks import pretraining_step
from modeling import precision as precisions
from modeling.config import BertConfig

_COMPILER = os.path.join(os.path.dirname(__file__), "peers", "tpu_compiler.py")


def program(
    config: BertConfig, batch_size: int, length: int, masks: int, precision: str
) -> bytes:
    """Returns the step as a serialized HLO module.

    Args:
        config: sizes of the network.
        batch_size, length, masks: B, S and P.
        precision: precision of the network.
    """
    with precisions.computing_in(precision):
        training, data = pretraining_step.make_steps(
            config, batch_size, length, masks, use_xla=True
        )

    @tf.function(jit_compile=True)
    def step(batch):
        return training._replica_step(batch)

    return step.experimental_get_compiler_ir(next(data))(stage="hlo_serialized")


def measure(python: str, topology: str, hlo: bytes) -> dict:
    """Compiles a module in the compiler's environment.

    Args:
        python: Python of that environment.
        topology: name of the topology in JAX.
        hlo: module from `program`.
    """
    with tempfile.NamedTemporaryFile(suffix=".hlo") as file:
        file.write(hlo)
        file.flush()
        printed = subprocess.run(
            [python, _COMPILER, file.name, topology],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "TPU_SKIP_MDS_QUERY": "1"},
        )
    printed.check_returncode()
    return json.loads(printed.stdout.splitlines()[-1])


def main() -> None:
    """Prints one JSON line."""
    defaults = [
        "v5e:2x2",
        "configs/bert_base.json",
        *("32", "128", "20"),
        "bfloat16",
    ]
    python, *given = sys.argv[1:]
    topology, path, *sizes, precision = given + defaults[len(given) :]
    config = BertConfig.from_json_file(path)
    hlo = program(config, *map(int, sizes), precision)
    result = {
        "what": f"a step of {path} for {topology}, "
        f"B={sizes[0]} S={sizes[1]} P={sizes[2]}, {precision}",
        "program_bytes": len(hlo),
        **measure(python, topology, hlo),
        "tensorflow": tf.__version__,
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
