"""Files that a run leaves in its folder."""

import hashlib
import json
import pathlib

from bert.tasks.run_folder import RunFolder


def opened(settings) -> RunFolder:
    """The folder of a run with its settings and records, but no model."""
    folder = settings.output_dir
    return RunFolder(folder, folder).read(settings)


def digests(folder: pathlib.Path, names: str = "*") -> dict[str, str]:
    """Name -> sha256 of its files."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.glob(names)
    }


def results(folder: pathlib.Path) -> dict[str, float]:
    """The values of `eval_results.txt`, in their order."""
    lines = (folder / "eval_results.txt").read_text().splitlines()
    return {k: float(v) for k, v in (line.split(" = ") for line in lines)}


def points(folder: pathlib.Path) -> list[dict]:
    """The lines of `metrics.jsonl`."""
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]
