"""Tables of users, in every format."""

import csv
import gzip
import io
import json
import pathlib

import pyarrow
from pyarrow import parquet

FORMATS = (
    *("x.csv", "x.tsv", "x.txt", "x.jsonl", "x.parquet"),
    *("x.csv.gz", "x.tsv.gz", "x.jsonl.gz"),
)


def write(
    path: pathlib.Path,
    rows: list[dict],
    header: bool = True,
    delimiter: str | None = None,
) -> str:
    """Writes rows in the format that the name of the file means.

    Args:
        path: the file, with one of the names of `FORMATS`.
        rows: name of a column -> value; all rows have the same names.
        header: whether a text file begins with the names.
        delimiter: separator of the fields of a text file. Default: a comma
            in .csv, else a tab.

    Returns:
        The path.
    """
    if path.suffix == ".parquet":
        parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        return str(path)

    values = [[*row.values()] for row in rows]
    if header:
        values.insert(0, [*rows[0]])
    text = io.StringIO()
    if ".jsonl" in path.name:
        text.writelines(json.dumps(row) + "\n" for row in rows)
    elif ".csv" in path.name:
        csv.writer(text, delimiter=delimiter or ",").writerows(values)
    else:
        between = delimiter or "\t"
        text.writelines(between.join(map(str, x)) + "\n" for x in values)

    content = text.getvalue().encode()
    packed = gzip.compress(content) if path.suffix == ".gz" else content
    path.write_bytes(packed)
    return str(path)


def cell(value: str, name: str, delimiter: str | None = None) -> str:
    """A value that a file can hold: only CSV has newlines in its fields.

    A value that ends in a part of the delimiter would be divided elsewhere.
    """
    if "tsv" not in name and "txt" not in name:
        return value
    for character in ("\t", "\r", "\n", *(delimiter or "\t")):
        value = value.replace(character, "_")
    return value
