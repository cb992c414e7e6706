"""The files of answers of google-research/bert `run_squad.py`.

predictions.json         id -> answer
nbest_predictions.json   id -> list of text, probability, logits
null_odds.json           id -> odds of no answer, in version 2
"""

import os

from common import durable, storage
from tasks.squad.spans import Entry

PREDICTIONS = "predictions.json"
NBEST = "nbest_predictions.json"
NULL_ODDS = "null_odds.json"


class Writer:
    """Writes a JSON object, an entry at a time; whole or not at all.

        with Writer(path) as writer:
            writer.write("q1", value)

    Args:
        path: the file; one that is there is replaced.
    """

    def __init__(self, path: str):
        self._path, self._partial = path, f"{path}.partial"
        self._file = open(self._partial, "w", encoding="utf-8")  # noqa: SIM115
        self._separator = "{\n"

    def write(self, key: str, value) -> None:
        """Adds an entry, indented as `json.dumps` does it with 4."""
        entry = durable.to_json({key: value}, indent=4)[2:-2]
        self._file.write(self._separator + entry)
        self._separator = ",\n"

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        empty = self._separator == "{\n"
        self._file.write("{}\n" if empty else "\n}\n")
        self._file.close()
        if kind is None:
            durable.sync_and_hash(self._partial)
            storage.replace(self._partial, self._path)
        else:
            os.remove(self._partial)


def describe(nbest: list[Entry]) -> list[dict]:
    """The entries of a question in `nbest_predictions.json`."""
    return [
        {
            "text": entry.text,
            "probability": entry.probability,
            "start_logit": entry.start_logit,
            "end_logit": entry.end_logit,
        }
        for entry in nbest
    ]


def write(path: str, values: dict) -> str:
    """Writes a JSON object at once; returns the path."""
    durable.write_whole(path, durable.to_json(values, indent=4) + "\n")
    return path
