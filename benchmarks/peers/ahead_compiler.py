"""Compiles HLO for devices that are not there; see benchmarks/ahead_of_time.py.

    python ahead_compiler.py MODULE.hlo PLATFORM TOPOLOGY COUNT OPTIMIZED.txt

PLATFORM is `tpu` or `cuda`. Writes the optimized program, and prints one JSON
line. Runs in the environment that `make tpu` or `make gpu` installs. JAX has
no public way to compile a module that it did not make itself.
"""

import json
import math
import os
import sys
import time

import jax
import numpy as np
from jax._src.interpreters import mlir
from jax._src.lib import xla_client
from jax.experimental import topologies
from jaxlib import _jax
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import stablehlo

_CARD = os.path.join(os.path.dirname(__file__), "h100.textproto")


def remove_copies(module: ir.Module) -> None:
    """Removes copies of values, which StableHLO cannot express."""
    for copy in operations(module, "mhlo.copy"):
        copy.results[0].replace_all_uses_with(copy.operands[0])
        copy.erase()


def product_flops(module: ir.Module) -> int:
    """FLOPs of the module's matrix products; of those in loops, once."""
    found = 0
    for product in operations(module, "stablehlo.dot", "stablehlo.dot_general"):
        left = ir.RankedTensorType(product.operands[0].type).shape
        result = ir.RankedTensorType(product.results[0].type).shape
        summed = [len(left) - 1]
        if product.name == "stablehlo.dot_general":
            summed = stablehlo.DotDimensionNumbers(
                product.attributes["dot_dimension_numbers"]
            ).lhs_contracting_dimensions
        found += 2 * math.prod(result) * math.prod(left[i] for i in summed)
    return found


def operations(module: ir.Module, *names: str) -> list:
    """The operations of these names."""
    found = []

    def collect(operation):
        if operation.name in names:
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(collect)
    return found


def devices_of(platform: str, topology: str) -> list:
    """The devices of a topology."""
    named = {"topology_name": topology}
    if platform == "cuda":
        with open(_CARD) as file:
            named = {"topology": topology, "target_config": file.read()}
    return topologies.get_topology_desc(platform=platform, **named).devices


def main(path, platform, topology, count, optimized) -> None:
    """Compiles the module for one of `count` devices that run it together."""
    count = int(count)
    devices = devices_of(platform, topology)[:count]
    with open(path, "rb") as file, mlir.make_ir_context():
        module = ir.Module.parse(_jax.mlir.hlo_to_stablehlo(file.read()))
        remove_copies(module)
        # Removes functions without a call, such as copies of loop bodies.
        passmanager.PassManager.parse("builtin.module(symbol-dce)").run(
            module.operation
        )
        flops = product_flops(module)
    options = xla_client.CompileOptions()
    options.num_replicas, options.num_partitions = count, 1
    options.device_assignment = xla_client.DeviceAssignment.create(
        np.arange(count).reshape(count, 1)
    )
    start = time.perf_counter()
    compiled = devices[0].client.compile(
        module, _jax.DeviceList(tuple(devices)), options
    )
    seconds = time.perf_counter() - start
    with open(optimized, "w") as file:
        file.write(compiled.hlo_modules()[0].to_string())
    memory = compiled.get_compiled_memory_stats()
    print(
        json.dumps(
            {
                "device": f"{count} x {devices[0].device_kind}",
                "compiled_in_seconds": round(seconds, 1),
                "product_flops": flops,
                "argument_bytes": memory.argument_size_in_bytes,
                "alias_bytes": memory.alias_size_in_bytes,
                "temporary_bytes": memory.temp_size_in_bytes,
                "jax": jax.__version__,
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
