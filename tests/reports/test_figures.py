"""Curves as SVG in the colours of the page."""

import re
import types

from bert.reports import contents, figures, quantities
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


def test_cuts_and_calibration_are_drawn_over_their_own_axes():
    bins = [[0.6, 0.5, 2], [0.9, 1.0, 3]]
    evaluation = {
        "cuts": {"spam": 0.25},
        "curves": {"spam": [[-1.0, 0.5, 1.0], [0.25, 1.0, 0.7]]},
        "calibration": {"before": {"bins": bins}, "after": {"bins": bins}},
    }
    run = types.SimpleNamespace(evaluation=evaluation)
    cut, calibration = contents.decisions(run)
    assert cut.quantity.meaning.endswith("which is 0.25.")
    assert [line.values for line in cut.lines] == [(0.5, 1.0), (1.0, 0.7)]
    assert calibration.lines[1].steps == (0.6, 0.9)
    texts = Page(figures.draw(calibration, "f0")).texts
    assert {"probability", "0.25", "0.5"} <= set(texts)
    run.evaluation = {}
    assert contents.decisions(run) == []
