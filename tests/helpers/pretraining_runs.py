"""Records and a config of a small run of pre-training, and its flags."""

import pathlib

import pytest

from tests.helpers import once, small
from tests.helpers.pretraining_files import write_records

RATES = "hidden_dropout_prob", "attention_probs_dropout_prob"


def write(folder: pathlib.Path, rate: float = 0.1, **sizes: int) -> None:
    """Writes records, held-out records, vocabulary and config.

    Args:
        folder: to write to.
        rate: of dropout.
        **sizes: of the network.
    """
    write_records(folder / "train.tfrecord", 23)
    write_records(folder / "held_out.tfrecord", 7, seed=2)
    config = small.config(**dict.fromkeys(RATES, rate), **sizes)
    (folder / "config.json").write_text(config.to_json())


def flags_of(folder: pathlib.Path, output: pathlib.Path, **changed) -> dict:
    """Flags of a run on these files; None omits a flag."""
    named = {
        "input_file": folder / "train.tfrecord",
        "bert_config_file": folder / "config.json",
        "train_batch_size": 4,
        "num_warmup_steps": 1,
        "learning_rate": 0.01,
        "log_steps": 1,
        "output_dir": output,
        **changed,
    }
    return {name: x for name, x in named.items() if x is not None}


def shared(factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder of these files that no test changes.

    Args:
        factory: `tmp_path_factory`.
    """
    return once.written(factory, "pretraining", write)
