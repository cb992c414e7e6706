"""Curves as inline SVG whose colours are CSS variables of the page.

Texts stay text. Titles and legends are HTML, so that they wrap on a narrow
page.
"""

import dataclasses
import io
import re
from collections.abc import Sequence

import matplotlib
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, MaxNLocator

from bert.reports.quantities import Quantity

NUM_COLOURS = 6

# Colours that are unique in a figure -> variables of the page.
_INK, _GRID, _REFERENCE = "#010101", "#020202", "#030303"
_LINES = [f"#0405{i:02x}" for i in range(NUM_COLOURS)]
_VARIABLES = {
    _INK: "var(--soft)",
    _GRID: "var(--line)",
    _REFERENCE: "var(--ref)",
    **{colour: f"var(--c{i})" for i, colour in enumerate(_LINES)},
}
_STYLE = {
    "svg.fonttype": "none",
    "font.size": 10,
    "axes.edgecolor": _GRID,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "grid.color": _GRID,
    "grid.linewidth": 0.6,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "xtick.major.pad": 6,
}
_INCHES = (4.2, 2.6)
_TICKS = [1, 2, 2.5, 5, 10]


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of a figure.

    Attributes:
        label: str. Label in the legend.
        steps, values: sequences of float. Points of the line.
        colour: int. Number of the colour, below `NUM_COLOURS`.
        is_dotted: bool. Whether points are marked, for rare evaluations.
            Default: False.
    """

    label: str
    steps: Sequence[float]
    values: Sequence[float]
    colour: int
    is_dotted: bool = False


@dataclasses.dataclass(frozen=True)
class Figure:
    """Curves, over the steps of training by default.

    Attributes:
        quantity: Quantity. Title, unit and meaning.
        lines: list of Line. At least one.
        references: list of (label, value). Horizontal lines.
        has_zero: bool. Whether the vertical axis starts at 0. Default: False.
        axis: str. Quantity of the horizontal axis. Default: "step".
    """

    quantity: Quantity
    lines: list[Line]
    references: list[tuple[str, float]]
    has_zero: bool = False
    axis: str = "step"


def draw(figure: Figure, name: str) -> str:
    """Draws a figure as an `<svg>` element.

    Args:
        figure: Figure. The curves.
        name: str. Prefix of the element's ids, unique in the page.

    Returns:
        The element, without a size: it fills its parent's width.
    """
    with matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}):
        canvas = Canvas(figsize=_INCHES, layout="constrained")
        axes = canvas.add_subplot()
        for line in figure.lines:
            axes.plot(
                line.steps,
                line.values,
                color=_LINES[line.colour],
                linewidth=1.6,
                marker="o" if line.is_dotted or len(line.steps) < 3 else None,
                markersize=4,
                clip_on=False,
            )

        for _, value in figure.references:
            axes.axhline(
                value, color=_REFERENCE, linewidth=1.1, linestyle=(0, (4, 3))
            )

        has_steps = figure.axis == "step"
        axes.set_xlabel(figure.axis)
        axes.set_ylabel(figure.quantity.unit)
        axes.xaxis.set_major_locator(
            MaxNLocator(5, integer=has_steps, steps=_TICKS)
        )
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=_TICKS))
        axes.xaxis.set_major_formatter(
            FuncFormatter(lambda x, _: f"{x:,.0f}" if has_steps else shown(x))
        )
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: shown(y)))
        axes.margins(x=0.02, y=0.08)
        if figure.has_zero:
            axes.set_ylim(bottom=0)

        # Without a date, the same run gives the same bytes.
        file = io.StringIO()
        canvas.savefig(
            file, format="svg", transparent=True, metadata={"Date": None}
        )
    return _themed(file.getvalue(), name)


def shown(value: float) -> str:
    """Formats a number with four significant digits, as `4,711` or `5e-5`."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if 0 < abs(value) < 0.001:
        digits, _, exponent = f"{value:.2e}".partition("e")
        return f"{float(digits):g}e{int(exponent)}"

    return f"{value:.4g}"


def _themed(text: str, name: str) -> str:
    """Replaces colours by variables, and makes the ids unique."""
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    head, _, rest = text.partition(">")
    (box,) = re.findall(r'viewBox="[^"]*"', head)

    # Ids must be unique in the page.
    rest = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", rest)

    # Use the page's font, but keep the sizes of matplotlib's layout.
    rest = re.sub(r"font-family: [^;\"]*;? ?", "", rest)
    for colour, variable in _VARIABLES.items():
        rest = rest.replace(colour, variable)

    return (
        f'<svg xmlns:xlink="http://www.w3.org/1999/xlink" {box} '
        f'aria-hidden="true">{rest}'
    )
