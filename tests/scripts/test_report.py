"""report.py from the command line."""

import report
from tests.helpers import report_files
from tests.helpers.html_page import Page


def test_the_report_of_a_run_is_in_its_folder(run_script, tmp_path):
    folder = report_files.write_run(tmp_path / "run")
    code, out, _ = run_script(report, run=folder)
    assert (code, out) == (0, f"wrote {folder}/report.html\n")
    path = tmp_path / "c.html"
    code, out, _ = run_script(report, run=folder, output_file=path)
    assert (code, out) == (0, f"wrote {path}\n")
    assert "Curves" in Page(path.read_text()).headings
    assert "Curves" in Page((folder / "report.html").read_text()).headings
