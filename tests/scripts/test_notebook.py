"""The notebook runs from its first cell to its last."""

import pathlib

import nbclient
import nbformat
import pytest

ROOT = pathlib.Path(__file__).parents[2]
PATH = ROOT / "examples" / "bert_in_twenty_cells.ipynb"
CHECKS = """
assert last_loss < 0.5 * first_loss, (first_loss, last_loss)
assert list(filled.values()) == ["water", "land", "on"], filled
assert answers["label"] == ["water", "land"], answers
assert found == ["water", "land"], found
"""


def test_there_are_twenty_cells_with_their_outputs():
    notebook = nbformat.read(PATH, 4)
    nbformat.validate(notebook)
    assert len(notebook.cells) == 20
    codes = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in codes] == [*range(1, 11)]
    for cell in codes[1:]:  # the first one imports
        assert cell.outputs
        assert max(map(len, cell.source.splitlines())) <= 80
        kinds = {output.get("name", "result") for output in cell.outputs}
        assert kinds <= {"result", "stdout"}  # no logs, with names of files


@pytest.mark.long
def test_the_notebook_runs():
    notebook = nbformat.read(PATH, 4)
    notebook.cells.append(nbformat.v4.new_code_cell(CHECKS))
    nbclient.NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(PATH.parent)}},
    ).execute()
