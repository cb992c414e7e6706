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
from bert.runs import opening
from bert.tasks.finetuning_settings import FineTuning
from bert.tasks.run import OutputFolder, Run

MODEL: Any = types.SimpleNamespace(
    path="",
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


def opened(settings) -> Run:
    """A run with its settings and records, but without a model."""
    settings, trained = opening.complete_settings(settings)
    if isinstance(settings, FineTuning):
        settings = opening.with_kept_layers(settings, trained)
    return made(settings, trained=trained)


def made(settings, **parts) -> Run:
    """A run without files; with a tokenizer it would check the texts."""
    from tests.helpers import small  # imports TensorFlow

    path = settings.output_dir
    usual = {"trained": None, "model": MODEL, "tokenizer": None}
    usual["config"] = small.config()
    return Run(settings, OutputFolder(path, path), **usual | parts)


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
