"""Models that always answer the same: a checkpoint, and one for each task."""

import pathlib

import gradio as gr

from bert.common.formats import tensor_files
from bert.data.sequences import Encoded
from bert.modeling.networks import build_pretraining_model
from bert.reports import demo_pages
from tests.helpers import model_files


class _Predictor:
    """A predictor whose prediction is always the same."""

    def __init__(self, inputs, **prediction):
        self.task, self._prediction = self, prediction
        self.inputs, self.max_length = inputs, 64

    def encode(self, examples):
        counts = [2 + len(str(x[self.inputs[0]]).split()) for x in examples]
        is_counted = self.inputs == ["text"] and "label" in self._prediction
        return [Encoded([], n * is_counted) for n in counts]

    def __call__(self, examples):
        return [self._prediction for _ in examples]


MODELS = {  # task -> predictor
    "classes": _Predictor(
        ["text"], label="mail", probabilities={"mail": 0.75, "bill": 0.25}
    ),
    "several": _Predictor(
        ["text"], label=[], probabilities={"mail": 0.25, "bill": 0.125}
    ),
    "value": _Predictor(["text", "text_b"], value=0.5),
    "choices": _Predictor(
        ["context", "choices"], best=1, probabilities=[0.25, 0.75]
    ),
    "span": _Predictor(
        ["question", "context"],
        answer="née",
        start=2,
        end=5,
        probability=0.5,
        null_odds=-3.0,
    ),
    "no span": _Predictor(
        ["question", "context"],
        answer="",
        start=0,
        end=0,
        probability=0.5,
        null_odds=3.0,
    ),
    "entities": _Predictor(
        ["text"],
        entities=[
            {"entity": "Rome", "type": "LOC", "start": 8, "end": 12},
            {"entity": "Anna", "type": "PER", "start": 0, "end": 4},
        ],
    ),
}


def page_of(task: str, folder: pathlib.Path = "nix") -> gr.Interface:
    """The demo's page of one of the models, as if exported to the folder."""
    (page,) = demo_pages.page_of_task(str(folder), MODELS[task]).values()
    return page


def write_checkpoint(folder: pathlib.Path) -> None:
    """Writes a run whose masked LM answers river, then stone."""
    model = build_pretraining_model(model_files.write_sizes(folder))
    values = model_files.biased_values(model, river=100, stone=99)
    tensor_files.write(str(folder / "model.ckpt-5"), values)
