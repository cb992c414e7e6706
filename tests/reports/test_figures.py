"""Curves as SVG in the colours of the page."""

import math
import re

import numpy as np

from bert.reports import contents, figures, quantities, run_files
from tests.helpers.html_page import Page

FIGURE = figures.Figure(
    quantities.of("loss"),
    [
        figures.Line("training", [1, 2, 3], [5.0, float("nan"), 3.0], 0),
        figures.Line("held out", [3], [4.0], 1, is_dotted=True),
    ],
    [("chance", 7.0)],
)


def test_colours_are_variables_of_the_page():
    text = figures.draw(FIGURE, "f0")
    assert not re.search(r"#[0-9a-f]{6}\b", text)
    used = set(re.findall(r"var\(--(\w+)\)", text))
    assert used == {"soft", "line", "ref", "c0", "c1"}


def test_text_stays_text_without_a_font():
    text = figures.draw(FIGURE, "f0")
    found = Page(text)
    assert {"step", "nats", "1", "3", "7"} <= set(found.texts)
    assert "DejaVu" not in text and "font-size: 10px" in text


def test_the_highest_point_is_whole():
    """It may be nearer to the edge than its mark is wide."""
    line = figures.Line("training", [10, 20], [700.0, 800.0], 0)
    figure = figures.Figure(quantities.of("rows"), [line], [], has_zero=True)
    text = figures.draw(figure, "f0")
    marks = text[: text.index("<use")].rsplit("<g", 1)[1]
    assert "clip-path" not in marks


def test_ids_are_those_of_the_figure():
    names = [
        {
            attributes["id"]
            for _, attributes in Page(figures.draw(FIGURE, name)).tags
            if "id" in attributes
        }
        for name in ("f0", "f1")
    ]
    assert names[0] and not names[0] & names[1]
    text = figures.draw(FIGURE, "f0")
    for used in re.findall(r"(?:url\(|href=\")#([^)\"]+)", text):
        assert used in names[0]


def test_a_figure_has_no_width_of_its_own():
    _, attributes = Page(figures.draw(FIGURE, "f0")).tags[0]
    assert "viewbox" in attributes
    assert not {"width", "height"} & attributes.keys()


def test_the_same_curves_give_the_same_bytes():
    assert figures.draw(FIGURE, "f0") == figures.draw(FIGURE, "f0")


def test_numbers_are_short():
    values = (4711.3, 0.12345678, 6.6667e-7, 5e-5, 0.0, -2345.6, 3e-300)
    shown = [figures.shown(value) for value in values]
    assert shown == [
        "4,711",
        "0.1235",
        "6.67e-7",
        "5e-5",
        "0",
        "-2,346",
        "3e-300",
    ]


def run_of(train, held_out=(), **changed):
    values = dict.fromkeys(("settings", "environment", "config"), {})
    values |= {"results": {}, "evaluation": {}, "commands": [], "step": 2}
    values |= changed
    return run_files.RunFiles("runs/a", "a", train, [*held_out], **values)


def test_curves_of_training_and_of_rare_evaluations():
    train = [
        {"step": 1, "loss": 0.0, "examples_per_second": 0.0},  # compiles
        {"step": 2, "loss": 1.5, "examples_per_second": 3.0},
    ]
    run = run_of(train, [{"step": 2, "loss": 1.25, "eval_f1": 0.5}])
    training = figures.Line("training", (1, 2), (0.0, 1.5), 0, False)
    held_out = figures.Line("held out", (2,), (1.25,), 1, True)
    loss, f1, speed = contents.curves(run)
    assert loss.lines == [training, held_out]
    assert f1.lines == [figures.Line("held out", (2,), (0.5,), 1, True)]
    assert speed.lines == [figures.Line("training", (2,), (3.0,), 0, False)]
    assert [x.has_zero for x in (loss, f1, speed)] == [False, False, True]


def test_chance_is_drawn_unless_it_was_recorded():
    references = {
        "masked_lm_loss/unigrams": 3.0,
        "next_sentence_loss/chance": 0.7,
    }
    run = run_of(
        [{"step": 1, "masked_lm_loss": 2.0, "next_sentence_loss": 0.5}],
        config={"vocab_size": 97},
        evaluation={"references": references},
    )
    masks, pairs = contents.curves(run)
    chance = ("chance, ln 97", math.log(97))
    assert masks.references == [("unigrams", 3.0), chance]
    assert pairs.references == [("chance", 0.7)]


def test_a_matrix_has_the_most_frequent_labels():
    rng = np.random.default_rng(1)
    matrix = rng.permutation(23 * 23).reshape(23, 23)
    labels = [f"l{i}" for i in range(23)]
    evaluation = {"labels": labels, "confusion_matrix": matrix.tolist()}
    found = contents.errors(run_of([], evaluation=evaluation))
    rows = np.sort(np.argsort(matrix.sum(1))[3:])
    assert [label for label, _ in found["matrix"]] == [labels[i] for i in rows]
    counts = [[count for count, _ in cells] for _, cells in found["matrix"]]
    np.testing.assert_array_equal(counts, matrix[rows][:, rows])
    assert found["dropped"] == 3


def test_cuts_and_calibration_are_drawn_over_their_own_axes():
    bins = [[0.6, 0.5, 2], [0.9, 1.0, 3]]
    evaluation = {
        "cuts": {"spam": 0.25},
        "curves": {"spam": [[-1.0, 0.5, 1.0], [0.25, 1.0, 0.7]]},
        "calibration": {"before": {"bins": bins}, "after": {"bins": bins}},
    }
    cut, calibration = contents.decisions(run_of([], evaluation=evaluation))
    assert cut.quantity.meaning.endswith("which is 0.25.")
    assert [line.values for line in cut.lines] == [(0.5, 1.0), (1.0, 0.7)]
    assert calibration.lines[1].steps == (0.6, 0.9)
    texts = Page(figures.draw(calibration, "f0")).texts
    assert {"probability", "0.25", "0.5"} <= set(texts)
    assert contents.decisions(run_of([])) == []
