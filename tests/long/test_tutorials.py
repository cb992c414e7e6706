"""The notebooks of docs/tutorials run from the first cell to the last."""

import pytest

from tests.helpers import library_files, notebooks

pytestmark = pytest.mark.long
NAMES = sorted(path.stem for path in notebooks.FOLDER.glob("*.ipynb"))


@pytest.fixture(scope="module")
def values(tmp_path_factory):
    """Constants of the notebooks, for a small model and few steps."""
    folder = tmp_path_factory.mktemp("models") / "small"
    library_files.pretrained(folder, max_position_embeddings=131)
    return {"MODEL": str(folder), "EPOCHS": 1, "STEPS": 20}


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs(name, values, tmp_path):
    path = notebooks.FOLDER / f"{name}.ipynb"
    done = notebooks.run(path, tmp_path, values)
    for cell in done.cells:
        if cell.cell_type == "code":
            assert "Traceback" not in str(cell.outputs), cell.source
    made = {x.name for x in tmp_path.iterdir()}
    results = {
        "classifier": {"libraries.keras", "libraries_export"},
        "search": {"train.csv", "search"},
        "pretraining": {"run", "encoder", "preprocessor"},
    }
    assert results[name] <= made
