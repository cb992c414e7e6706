"""FLOPs and texts of programs, of which benchmarks report numbers."""

import math

import pytest
import tensorflow as tf

from benchmarks import flops, program_text
from modeling import losses, models
from modeling.config import BertConfig
from tests.helpers import small
from tests.helpers.small import B, P, S

SMALL = BertConfig(
    vocab_size=30522,
    hidden_size=512,
    num_hidden_layers=4,
    num_attention_heads=8,
    intermediate_size=2048,
)


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
    model = models.build_pretraining_model(config)

    @tf.function(autograph=False)
    def gradients(batch):
        with tf.GradientTape() as tape:
            outputs = model({name: batch[name] for name in model.input})
            sums = losses.pretraining_sums(batch, outputs)
            loss = sums["masked_lm_loss"] + sums["next_sentence_loss"]
        return tape.gradient(loss, [x.value for x in model.trainable_variables])

    graph = gradients.get_concrete_function(small.batch()).graph
    assert products_of(graph) == flops.executed(config, B, S, P)
    assert products_of(graph) < flops.nominal(config, B, S, P)


HEAD = """HloModule step, is_scheduled=true

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  ROOT %sum = f32[] add(%a, %a)
}

ENTRY %main (x: f32[3,5]) -> f32[3,5] {
"""
SIZE = 2 * 3 * 5 * 5
LAYER = """  %scores.{i} = f32[6,5,5]{{2,1,0}} fusion(%x), kind=kLoop
  %same.{i} = f32[2,3,5,5]{{3,2,1,0}} bitcast(%scores.{i})
  %probs.{i} = bf16[2,3,5,5]{{3,2,1,0}} fusion(%same.{i}), kind=kLoop
"""


def found(*lines):
    return program_text.check(HEAD + "".join(lines) + "}\n", 15, SIZE)


def test_scores_that_outlive_their_layer_are_counted():
    """Also by another name, and as a part of a result."""
    layers = [LAYER.format(i=i) for i in range(3)]
    used = "  %end = f32[] fusion(%same.0, %same.2), kind=kLoop\n"
    assert found(*layers, used)["scores_held"] == 2
    pair = "  %p = (f32[2,3,5,5]{3,2,1,0}, f32[2,75]{1,0}) fusion(%x)\n"
    part = "  %q = f32[2,75]{1,0} get-tuple-element(%p), index=1\n"
    end = "  %end = f32[] fusion(%q, %scores.0), kind=kLoop\n"
    assert found(pair, part, *layers, end)["scores_held"] == 4


def test_what_a_step_should_not_have_is_counted():
    lines = (
        "  %wide = f64[] convert(%x)\n",
        "  %copy.1 = f32[3,5]{1,0} copy(%x)\n",
        "  %copy.2 = (f32[3,5]{0,1}, u32[]) copy-start(%x)\n",
        "  %there = (f32[3], token[]) send(%x, %y), channel_id=1\n",
        "  %host = f32[3]{0:S(5)} fusion(%x)\n",
    )
    assert found(*lines) == {
        "float64": 1,
        "weight_copies": 2,
        "host_transfers": 2,
        "scores_held": 0,
    }


def test_sums_over_devices_are_counted():
    text = "%a = f32[7] all-reduce(%x)\n%b = f32[7] all-reduce-start(%x)\n"
    done = "%c = f32[7] all-reduce-done(%b)\n"
    assert program_text.all_reduces(text + done) == 2
