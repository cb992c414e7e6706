"""Files that a run leaves in its folder."""

import hashlib
import itertools
import json
import pathlib
import types
from typing import Any

from bert.common import command_line
from bert.data.text import vocabulary
from bert.data.text.tokenizer import Tokenizer
from bert.runs.run_folder import RunFolder

MODEL: Any = types.SimpleNamespace(
    tokenizer=Tokenizer("vocab.txt", tokens=[*vocabulary.SPECIAL_TOKENS]),
    pooling_config=None,
)


def parse(settings_class, *words: str, **named):
    """Settings of a command line; named flags have values.

    Args:
        settings_class: the settings of the script.
        *words: flags without a value.
        **named: flag -> value. Default of output_dir: "none".
    """
    named = {"output_dir": "none", **named}
    argv = ["script", *words, *(f"--{k}={v}" for k, v in named.items())]
    return command_line.parse(argv, settings_class, "")


def opened(settings) -> RunFolder:
    """The folder of a run with its settings and records, but no weights."""
    folder = settings.output_dir
    return RunFolder(folder, folder, model=MODEL).read(settings)


def splits(files) -> list:
    """The files of a run: for training, evaluation, prediction."""
    return [*itertools.chain(*files.values())]


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
