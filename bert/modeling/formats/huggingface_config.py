"""The `config.json` of Hugging Face transformers: sizes, head and labels."""

import json
import os
from typing import TypedDict

import numpy as np

from bert.common import storage
from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.modeling.config import BertConfig
from bert.modeling.task_heads import HEADS, PRETRAINING, heads_of

CONFIG = "config.json"

# "gelu" is the erf form in transformers, the tanh form in the original.
_ACTIVATIONS = {
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "gelu_new": "gelu",
    "gelu_fast": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "relu": "relu",
    "tanh": "tanh",
    "linear": "linear",
}
_THEIR_ACTIVATIONS = {
    "gelu": "gelu_new",
    "gelu_new": "gelu_new",
    "gelu_erf": "gelu",
    "relu": "relu",
    "tanh": "tanh",
    "linear": "linear",
}
_DEFAULTS = {"vocab_size": 30522, "type_vocab_size": 2, "hidden_act": "gelu"}
_FIXED = {
    "model_type": "bert",
    "layer_norm_eps": 1e-12,
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "pruned_heads": {},
}
# These three heads have the same name, so a folder can only have one of them.
CLASSIFIERS = {
    head.scope: head.architecture
    for head in HEADS.values()
    if head.their_layer == "classifier"
}
PROBLEMS = {  # kind of labels -> problem_type of transformers
    "classes": "single_label_classification",
    "multi_label": "multi_label_classification",
    "regression": "regression",
}

_Config = TypedDict(
    "_Config",
    {
        **BertConfig.__annotations__,  # type: ignore[misc]
        **dict.fromkeys(_FIXED, object),
        "architectures": list[str] | None,
        "problem_type": str | None,
        "id2label": dict | None,
    },
    total=False,
)


def read(path: str) -> BertConfig:
    """Reads a `config.json`; the activation is renamed to the original's.

    Args:
        path: str. Path of the `config.json`.

    Raises:
        UserError: the file is missing or not JSON, or describes another
            network.
    """
    values = json_files.read(path, _Config)
    for key, expected in _FIXED.items():
        if values.get(key, expected) != expected:
            raise UserError(
                f"{key} is {values[key]!r}", path=path, expected=repr(expected)
            )

    # transformers may omit default values.
    values = {**_DEFAULTS, **values}
    theirs = values["hidden_act"]
    values["hidden_act"] = _ACTIVATIONS.get(theirs, theirs)

    # All other keys are only used by transformers.
    with json_files.reported(path):
        return BertConfig.from_dict(
            {k: v for k, v in values.items() if k in BertConfig.__annotations__}
        )


def read_values(folder: str) -> dict:
    """Reads the values of a folder's `config.json`; {} if it has none."""
    path = os.path.join(folder, CONFIG)
    return json_files.read(path, _Config) if storage.is_file(path) else {}


def named_labels(values: dict) -> dict | None:
    """Returns the labels of a classifier, if a `config.json` names them.

    Args:
        values: dict. Result of `read_values`.
    """
    labels = label_names(values)
    scope = classifier_scope(values)
    if scope not in ("", "cls/ner/") or labels is None:
        return None

    kinds = {theirs: ours for ours, theirs in PROBLEMS.items()}
    kind = kinds.get(values.get("problem_type", ""), "classes")
    kind = None if scope else kind
    if len(labels) == 1 and kind in ("classes", "regression"):
        return {"kind": "regression", "labels": []}  # as in transformers

    # Default label names such as LABEL_0 are ignored.
    if None in labels or labels == _numbered(len(labels)):
        return None

    return {"kind": kind, "labels": list(map(str, labels))}


def label_names(values: dict) -> list | None:
    """Returns the names of labels in order, None for one without a name.

    Args:
        values: dict. Result of `read_values`.
    """
    named = values.get("id2label")
    if named is None:
        return None
    return [named.get(str(i)) for i in range(len(named))]


def to_json(
    config: BertConfig, values: dict[str, np.ndarray], task: dict | None
) -> str:
    """Formats the `config.json` of a model with these weights."""
    theirs = {
        key: getattr(config, key)
        for key in BertConfig.__annotations__
        if key != "hidden_act"
    }

    theirs |= {key: value for key, value in _FIXED.items() if value}
    theirs["hidden_act"] = _THEIR_ACTIVATIONS[config.hidden_act]
    theirs["architectures"] = architectures(values)
    theirs["pad_token_id"] = 0

    for name in heads_of(values):
        head = HEADS[name]
        if name in PRETRAINING or head.has_choices:
            continue
        labels = task["labels"] if task else []
        if head.scope in CLASSIFIERS:
            unnamed = _numbered(len(values[f"{head.scope}output_weights"]))
            if task and len(labels or unnamed) == len(unnamed):
                if task["kind"] in PROBLEMS:
                    theirs["problem_type"] = PROBLEMS[task["kind"]]
            else:
                labels = unnamed
            labels = labels or unnamed  # regression has no names
        if labels:
            theirs["id2label"] = {str(i): x for i, x in enumerate(labels)}
            theirs["label2id"] = {x: i for i, x in enumerate(labels)}

    return json.dumps(theirs, indent=2, sort_keys=True) + "\n"


def _numbered(count: int) -> list[str]:
    """Names that transformers gives to unnamed labels."""
    return [f"LABEL_{i}" for i in range(count)]


def architectures(values: dict[str, np.ndarray]) -> list[str]:
    """Classes of transformers that have exactly these weights."""
    names = heads_of(values)
    classes = [HEADS[name].architecture for name in names]
    if names[:2] == [*PRETRAINING]:
        classes[:2] = ["BertForPreTraining"]
    return [x for x in classes if x] or ["BertModel"]


def classifier_scope(config: dict) -> str | None:
    """Checkpoint scope of the head named `classifier`, if known."""
    named = config.get("architectures") or []
    for scope, architecture in CLASSIFIERS.items():
        if architecture in named:
            return scope
    return None


def classifier_scopes(values: dict[str, np.ndarray]) -> list[str]:
    """Checkpoint scopes of the heads that would be named `classifier`."""
    return [x for x in CLASSIFIERS if f"{x}output_weights" in values]
