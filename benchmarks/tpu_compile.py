r"""Compiles a pre-training step for a TPU that is not there.

    python -m benchmarks.tpu_compile PYTHON \
        [TOPOLOGY [CONFIG.json [B S P [PRECISION]]]]

TensorFlow makes one program of the whole step: forward, backward, dropout,
clipping, update. PYTHON is of the environment that `make tpu` installs; there
the compiler of libtpu takes the program for a core of TOPOLOGY, `v5e:2x2`, and
tells what memory it needs. Nothing is run on a TPU.
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
    config: BertConfig, rows: int, length: int, places: int, precision: str
) -> bytes:
    """The step as a serialized HLO module.

    Args:
        config: sizes.
        rows, length, places: B, S and P.
        precision: that the network computes in.
    """
    with precisions.computing_in(precision):
        training, data = pretraining_step.make_steps(
            config, rows, length, places, use_xla=True
        )

    @tf.function(jit_compile=True)
    def step(batch):
        return training._replica_step(batch)

    return step.experimental_get_compiler_ir(next(data))(stage="hlo_serialized")


def measure(python: str, topology: str, hlo: bytes) -> dict:
    """Compiles a module in the compiler's environment.

    Args:
        python: of that environment.
        topology: as JAX names them.
        hlo: from `program`.
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
