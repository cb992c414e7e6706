"""The page of one run, or of several side by side: one HTML file.

    run_files -> contents (curves, tables) -> page.html -> report.html

All texts are escaped by the template's engine; the page has no scripts and
loads nothing.
"""

import datetime
import pathlib

import jinja2
import markupsafe

from bert.common.storage import write_whole
from bert.reports import contents, figures
from bert.reports.run_files import RunFiles, is_number


def write(runs: list[RunFiles], path: str) -> None:
    """Writes the report of runs."""
    write_whole(path, render(runs))


def render(runs: list[RunFiles]) -> str:
    """Returns the page of runs as HTML."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(pathlib.Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["shown"] = _shown
    plots = [
        (figure, markupsafe.Markup(figures.draw(figure, f"f{i}")))
        for i, figure in enumerate(contents.curves(runs))
    ]
    now = datetime.datetime.now(datetime.UTC)
    return environment.get_template("page.html").render(
        runs=runs,
        plots=plots,
        scores=contents.scores(runs),
        data=contents.data(runs),
        parts=[contents.errors(run) for run in runs],
        different=contents.different_settings(runs),
        time=f"{now:%Y-%m-%d %H:%M} UTC",
    )


def _shown(value) -> str:
    """Formats a cell of a table: numbers briefly, nothing as a dash."""
    if value is None or value == "":
        return "–"
    if is_number(value):
        return (
            figures.shown(value) if isinstance(value, float) else f"{value:,}"
        )
    return str(value)
