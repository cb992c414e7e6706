"""Benchmarks: their modules, and the FLOPs of which they report numbers."""

import importlib
import math
import pathlib

import pytest
import tensorflow as tf

from benchmarks import flops
from bert.modeling import networks
from bert.modeling.config import BertConfig
from tests.helpers import small, tiny
from tests.helpers.small import B, P, S

FOLDER = pathlib.Path(flops.__file__).parent
NAMES = {path.stem for path in FOLDER.glob("*.py")}
NAMES.remove("onnx_serving")  # runs in an environment of its own
SMALL = BertConfig(
    vocab_size=30522,
    hidden_size=512,
    num_hidden_layers=4,
    num_attention_heads=8,
    intermediate_size=2048,
)


@pytest.mark.slow
def test_every_benchmark_can_be_imported():
    """`make test-long` runs some at toy sizes."""
    for name in NAMES:
        importlib.import_module(f"benchmarks.{name}")


def test_the_step_of_the_results_in_gflop():
    assert round(flops.nominal(SMALL, 32, 128, 20) / 1e9, 1) == 383.2
    assert round(flops.executed(SMALL, 32, 128, 20) / 1e9, 1) == 326.6


def products_of(graph):
    """FLOPs of the executed matrix products; sizes are static."""
    found, seen = 0, set()
    waiting = [output.op for output in graph.outputs]
    while waiting:
        op = waiting.pop()
        if op in seen:
            continue
        seen.add(op)
        waiting += [x.op for x in op.inputs] + list(op.control_inputs)
        # Segment embeddings are looked up by a matrix product.
        if op.type in ("MatMul", "BatchMatMulV2") and "embed" not in op.name:
            flag = "transpose_a" if op.type == "MatMul" else "adj_x"
            inner = op.inputs[0].shape[-2 if op.get_attr(flag) else -1]
            found += 2 * math.prod(op.outputs[0].shape) * inner
    return found


@pytest.mark.parametrize("layers", [1, 3])
def test_executed_flops_are_those_of_the_graph(layers):
    config = small.config(num_hidden_layers=layers)
    model = networks.build_pretraining_model(config)

    @tf.function(autograph=False)
    def gradients(batch):
        with tf.GradientTape() as tape:
            outputs = model({name: batch[name] for name in model.input})
            sums = tiny.sums_of(batch, outputs)
            loss = sums["masked_lm_loss"] + sums["next_sentence_loss"]
        return tape.gradient(loss, [x.value for x in model.trainable_variables])

    graph = gradients.get_concrete_function(small.batch()).graph
    assert products_of(graph) == flops.executed(config, B, S, P)
    assert products_of(graph) < flops.nominal(config, B, S, P)
