"""Runs the notebooks of docs/tutorials.

python -m tests.helpers.notebooks NAME=VALUE ...

Without a test, writes the outputs into the files. `MODEL=minilm` is the value
of a constant while the notebooks run; the files keep theirs.
"""

import os
import pathlib
import re
import sys
import tempfile

import nbclient
import nbformat

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "tutorials"


def run(
    path: pathlib.Path, folder: pathlib.Path, values: dict
) -> nbformat.NotebookNode:
    """Runs a notebook in a folder; an error of a cell is raised.

    Args:
        path: of the notebook.
        folder: current folder of the notebook.
        values: constant of the first cell with code -> another value.
    """
    notebook = nbformat.read(path, 4)
    first = next(x for x in notebook.cells if x.cell_type == "code")
    source = first.source
    for name, value in values.items():
        line = rf"^{name} = .*$"
        first.source = re.sub(
            line,
            lambda _, n=name, v=value: f"{n} = {v!r}",
            first.source,
            flags=re.M,
        )
    python = [str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]
    changed = {"PATH": os.pathsep.join(python), "PYTHONPATH": str(ROOT)}
    nbclient.NotebookClient(
        notebook,
        timeout=900,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    ).execute(env=os.environ | changed)
    first.source = source
    return notebook


def is_noise(output: nbformat.NotebookNode) -> bool:
    """Whether an output is empty, or a message of TensorFlow on the CPU."""
    text = output.get("text", "shown").strip()
    return not text or "oneDNN" in text


if __name__ == "__main__":
    given = dict(word.split("=", 1) for word in sys.argv[1:])
    for file in sorted(FOLDER.glob("*.ipynb")):
        print(file.stem, flush=True)
        with tempfile.TemporaryDirectory() as scratch:
            done = run(file, pathlib.Path(scratch), given)
        for cell in done.cells:
            cell.metadata.pop("execution", None)  # times
            if cell.cell_type == "code":
                cell.outputs = [x for x in cell.outputs if not is_noise(x)]
        nbformat.write(done, file)
