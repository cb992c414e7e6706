"""Small models in each format that the library loads."""

import json
import pathlib

import numpy as np

from bert.common.formats import tensor_files
from bert.data.text.tokenizer import Tokenizer
from bert.modeling import networks, task_heads
from bert.modeling.formats import conversion
from bert.modeling.formats.model import Model
from bert.modeling.networks import build_pretraining_model
from tests.helpers import model_files, small, text

V = len(text.VOCABULARY)


def config(**changed):
    """Sizes of all models here."""
    return small.config(vocab_size=V, **changed)


def pretrained(folder: pathlib.Path, **changed) -> dict[str, np.ndarray]:
    """A folder as the original ships it, with both heads; its weights."""
    folder.mkdir(parents=True)
    sizes = model_files.write_sizes(folder, **changed)
    values = model_files.random_values(build_pretraining_model(sizes))
    tensor_files.write(str(folder / "bert_model.ckpt"), values)
    return values


def run(folder: pathlib.Path) -> dict[str, np.ndarray]:
    """The output folder of a cased run with three labels; its weights."""
    folder.mkdir(parents=True)
    sizes = model_files.write_sizes(folder)
    values = model_files.random_values(
        networks.build(sizes, task_heads.CLASSIFIER, 3)
    )
    slots = {f"{name}/adam_m": 0 * value for name, value in values.items()}
    step = {"global_step": np.int64(7)}
    prefix = str(folder / "model.ckpt-7")
    tensor_files.write(prefix, values | slots | step)
    settings = {"do_lower_case": False, "strip_accents": None}
    pathlib.Path(f"{prefix}.json").write_text(
        json.dumps({"settings": settings})
    )
    return values


def huggingface(
    folder: pathlib.Path, values: dict[str, np.ndarray], **changed
) -> None:
    """A folder of Hugging Face with these weights."""
    folder.mkdir(parents=True)
    tokenizer = Tokenizer("vocab.txt", tokens=text.VOCABULARY)
    model = Model("", config(**changed), values, tokenizer)
    conversion.write(model, "huggingface", str(folder))
