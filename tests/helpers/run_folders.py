"""Files that a run leaves in its folder."""

import json
import pathlib


def results(folder: pathlib.Path) -> dict[str, float]:
    """The values of `eval_results.txt`, in their order."""
    lines = (folder / "eval_results.txt").read_text().splitlines()
    return {k: float(v) for k, v in (line.split(" = ") for line in lines)}


def points(folder: pathlib.Path) -> list[dict]:
    """The lines of `metrics.jsonl`."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]
