"""Findings in the text of an optimized program."""

from benchmarks import program_text

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


def test_scores_that_end_with_their_layer_are_held_once():
    layers = [LAYER.format(i=i) for i in range(3)]
    assert found(*layers)["scores_held"] == 1


def test_scores_that_outlive_their_layer_are_counted():
    """Also by another name, and as a part of a result."""
    layers = [LAYER.format(i=i) for i in range(3)]
    used = "  %end = f32[] fusion(%same.0, %same.2), kind=kLoop\n"
    assert found(*layers, used)["scores_held"] == 2
    pair = "  %p = (f32[2,3,5,5]{3,2,1,0}, f32[2,75]{1,0}) fusion(%x)\n"
    part = "  %q = f32[2,75]{1,0} get-tuple-element(%p), index=1\n"
    end = "  %end = f32[] fusion(%q, %scores.0), kind=kLoop\n"
    assert found(pair, part, *layers, end)["scores_held"] == 4


def test_a_good_step_has_none_of_what_is_counted():
    lines = (
        "  %small = f32[7]{0} copy(%x)\n",
        "  %half = bf16[3,5]{1,0} copy(%x)\n",
    )
    assert not any(found(*lines).values())


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
