"""Compiles HLO for a TPU that is not there; see benchmarks/tpu_compile.py.

    python tpu_compiler.py MODULE.hlo TOPOLOGY

Prints one JSON line. Runs in the environment that `make tpu` installs. JAX has
no public way to compile a module that it did not make itself.
"""

import json
import sys
import time

import jax
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jax.experimental import topologies
from jaxlib import _jax
from jaxlib.mlir import ir


def remove_copies(module: ir.Module) -> None:
    """Removes copies of values, which StableHLO cannot express."""
    copies = []

    def collect(operation):
        if operation.name == "mhlo.copy":
            copies.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    for copy in copies:
        copy.results[0].replace_all_uses_with(copy.operands[0])
        copy.erase()


def main(path: str, topology: str) -> None:
    """Compiles the module for one core of the topology."""
    devices = topologies.get_topology_desc(topology, platform="tpu").devices
    with open(path, "rb") as file, mlir.make_ir_context():
        module = ir.Module.parse(_jax.mlir.hlo_to_stablehlo(file.read()))
        remove_copies(module)
    options = xla_client.CompileOptions()
    options.num_replicas = options.num_partitions = 1
    start = time.perf_counter()
    compiled = devices[0].client.compile(
        module, _jax.DeviceList(tuple(devices[:1])), options
    )
    memory = compiled.get_compiled_memory_stats()
    print(
        json.dumps(
            {
                "device": devices[0].device_kind,
                "seconds": round(time.perf_counter() - start, 1),
                "argument_bytes": memory.argument_size_in_bytes,
                "alias_bytes": memory.alias_size_in_bytes,
                "temporary_bytes": memory.temp_size_in_bytes,
                "jax": jax.__version__,
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
