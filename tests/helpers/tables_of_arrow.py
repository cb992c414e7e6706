"""Parquet and Arrow files, and folders as `datasets` writes them."""

import json
import pathlib

import pyarrow
from pyarrow import ipc, parquet


def write(path: pathlib.Path, columns: dict, classes=None) -> None:
    """Writes columns; the kind follows from the name.

    Args:
        path: name.parquet, stream.arrow, file.arrow or a folder.
        columns: name -> values.
        classes: column -> names of its `ClassLabel`.
    """
    table = pyarrow.table(columns)
    if classes:
        features = {
            name: {"names": names, "_type": "ClassLabel"}
            for name, names in classes.items()
        }
        described = json.dumps({"info": {"features": features}})
        table = table.replace_schema_metadata({"huggingface": described})
    if path.suffix == ".parquet":
        parquet.write_table(table, path)
    elif path.suffix == ".arrow":
        new = ipc.new_file if path.stem == "file" else ipc.new_stream
        with open(path, "wb") as file, new(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
    else:
        _write_folder(path, table)


def _write_folder(path: pathlib.Path, table) -> None:
    """Two files, their description, and a cache that is no part of it."""
    path.mkdir(parents=True)
    half = len(table) // 2
    names = [f"data-0000{i}-of-00002.arrow" for i in range(2)]
    for name, rows in zip(names, (table[:half], table[half:])):
        with (
            open(path / name, "wb") as file,
            ipc.new_stream(file, table.schema) as writer,
        ):
            writer.write_table(rows)
    (path / "cache-1a2b.arrow").write_bytes((path / names[0]).read_bytes())
    state = {"_data_files": [{"filename": name} for name in names]}
    (path / "state.json").write_text(json.dumps(state))
    (path / "dataset_info.json").write_text('{"features": {}}')
