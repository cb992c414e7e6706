"""Models that always answer the same: a checkpoint, and one for each task."""

import pathlib
from unittest import mock

import gradio as gr
import numpy as np

from bert.common import tensor_files
from bert.modeling.models import build_pretraining_model
from bert.reports import demo_pages
from bert.serving import asking
from bert.serving.predict_settings import Settings
from tests.helpers import model_files


def _texts(*texts: str) -> np.ndarray:
    return np.array([[text.encode() for text in texts]])


def _model(inputs, count_tokens=None, has_choices=False, **outputs):
    values = {
        name: value if isinstance(value, np.ndarray) else np.array([value])
        for name, value in outputs.items()
    }
    return asking.ServedModel(
        lambda _: values, inputs, has_choices, count_tokens
    )


def _count(strings):
    return 64, np.array([2 + len(x.split()) for x in strings["text"]])


CLASSES = {"label_names": _texts("mail", "bill")}
MODELS = {  # task -> model, as `asking.load` returns it
    "classes": _model(
        ["text"],
        _count,
        **CLASSES,
        label=b"mail",
        probabilities=np.array([[0.75, 0.25]]),
    ),
    "several": _model(
        ["text"],
        **CLASSES,
        label=_texts("", ""),
        probabilities=np.array([[0.25, 0.125]]),
    ),
    "value": _model(["text", "text_b"], value=0.5),
    "choices": _model(
        ["context", "choices"],
        has_choices=True,
        label=1,
        probabilities=np.array([[0.25, 0.75]]),
    ),
    "span": _model(
        ["question", "context"],
        answer="née".encode(),
        start=2,
        end=5,
        probability=0.5,
        null_odds=-3.0,
    ),
    "no span": _model(
        ["question", "context"],
        answer=b"",
        start=0,
        end=0,
        probability=0.5,
        null_odds=3.0,
    ),
    "entities": _model(
        ["text"],
        entities=_texts("Rome", "Anna", ""),
        types=_texts("LOC", "PER", ""),
        starts=np.array([[8, 0, 0]]),
        ends=np.array([[12, 4, 0]]),
        scores=np.array([[0.75, 0.5, 0.0]]),
    ),
}


def page_of(task: str, folder: pathlib.Path = "nix") -> gr.Interface:
    """The demo's page of one of the models, as if exported to the folder."""
    settings = Settings(model=str(folder))
    with mock.patch.object(asking, "load", lambda _: MODELS[task]):
        (page,) = demo_pages.pages_of_export(settings).values()
    return page


def write_checkpoint(folder: pathlib.Path) -> None:
    """Writes a run whose masked LM answers river, then stone."""
    model = build_pretraining_model(model_files.write_sizes(folder))
    values = model_files.biased_values(model, river=100, stone=99)
    tensor_files.write(str(folder / "model.ckpt-5"), values)
