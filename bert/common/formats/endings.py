"""Formats of texts and tables, by the endings of their names."""

import os

_FORMATS = {
    ".json": "json",
    ".jsonl": "json",
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": "tsv",
    ".txt": "text",
}
TABLES = ("csv", "tsv", "parquet")


def format_of(path: str) -> str:
    """Returns the format that a file name means, "" for other endings.

    Args:
        path: str. The file, also with `.gz` after its ending.
    """
    ending = os.path.splitext(path.removesuffix(".gz"))[1]
    return _FORMATS.get(ending, "")
