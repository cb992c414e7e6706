"""Report of a run: one HTML file.

    run_files -> contents (curves, tables) -> page.html -> report.html

The template engine escapes all texts, `printable` their control characters. The
page has no scripts and loads no other files.
"""

import datetime
import pathlib

import jinja2
import markupsafe

from bert.common.atomic import write_whole
from bert.common.errors import printable
from bert.reports import contents, figures
from bert.reports.run_files import RunFiles, is_number


def write(run: RunFiles, path: str) -> None:
    """Writes the report of a run."""
    write_whole(path, render(run))


def render(run: RunFiles) -> str:
    """Returns the page of a run as HTML."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(pathlib.Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["shown"] = _shown

    # Markup is not escaped by the engine.
    plots = [
        (figure, markupsafe.Markup(figures.draw(figure, f"f{i}")))
        for i, figure in enumerate(
            contents.curves(run) + contents.decisions(run)
        )
    ]

    now = datetime.datetime.now(datetime.UTC)
    text = environment.get_template("page.html").render(
        run=run,
        plots=plots,
        scores=contents.scores(run),
        errors=contents.errors(run),
        time=f"{now:%Y-%m-%d %H:%M} UTC",
    )
    # Control characters would reverse the text, or change a terminal.
    return "\n".join(map(printable, text.split("\n")))


def _shown(value) -> str:
    """Formats a cell of a table: short numbers, a dash for no value."""
    if value is None or value == "":
        return "–"
    if is_number(value):
        return (
            figures.shown(value) if isinstance(value, float) else f"{value:,}"
        )
    return str(value)
