"""The report of a run at its end."""

import dataclasses

import pytest

from bert.reports.drawing import draw_trained  # before the tests replace it
from bert.tasks.pretraining.settings import Settings
from tests.helpers import report_files


def settings_of(folder, **changes):
    required = {"bert_config_file": "a", "output_dir": str(folder)}
    return dataclasses.replace(Settings(), **required | changes)


@pytest.mark.parametrize(
    ("flags_of_run", "is_chief", "is_drawn"),
    [
        ({"do_train": True}, True, True),
        ({"do_train": True}, False, False),
        ({"do_train": True, "report": False}, True, False),
        ({"do_eval": True}, True, False),
    ],
)
def test_a_run_that_trains_has_a_report(
    tmp_path, flags_of_run, is_chief, is_drawn
):
    folder = report_files.write_run(tmp_path / "run")
    draw_trained(settings_of(folder, **flags_of_run), is_chief)
    assert (folder / "report.html").exists() == is_drawn


def test_a_run_without_the_libraries_or_curves_ends_well(
    tmp_path, hide_package, capsys
):
    folder = report_files.write_run(tmp_path / "run")
    draw_trained(settings_of(tmp_path, do_train=True), True)
    hide_package("jinja2")
    draw_trained(settings_of(folder, do_train=True), True)
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(
        f"report.html is not written: {tmp_path}: no metrics.jsonl and no "
    )
    assert second == (
        "report.html is not written: missing packages: jinja2; in the "
        "checkout: pip install -r requirements/report.txt"
    )
