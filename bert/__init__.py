"""BERT on TensorFlow and Keras, as a library; see docs/library.md.

    import bert

    encoder, tokenizer = bert.load_encoder("uncased_L-12_H-768_A-12")
    vectors = encoder(tokenizer(["The cat sees the old house."]))

TensorFlow is imported when one of the names of `__all__` is first used, but for
`BertConfig` and `Tokenizer`, which do without, and `embed`, which does without
for a network of OpenVINO. If `bert` is imported before `tensorflow` and
`keras`, they load without log messages about missing devices. Keras knows the
classes of ours, in either order.
"""

import importlib
import sys

from bert.common import packages, tensorflow_log

__all__ = [
    "AdamWeightDecay",
    "BertConfig",
    "Encoder",
    "QuestionAnswerer",
    "TextClassifier",
    "TokenClassifier",
    "Tokenizer",
    "WarmupLinearDecay",
    "classifier",
    "embed",
    "fill_mask",
    "load_encoder",
    "masked_lm",
    "new_encoder",
    "next_sentence",
    "pretraining_dataset",
    "save",
    "span_model",
    "token_classifier",
]

_MODULES = {  # of the names that need no TensorFlow
    "BertConfig": "bert.modeling.config",
    "Tokenizer": "bert.data.text.tokenizer",
    "embed": "bert.models.embeddings",
}


def __getattr__(name: str):
    """Returns a function or class of the library, imported late."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(_MODULES.get(name, "bert.library"))
    except ModuleNotFoundError as error:
        # One of ours that is missing is a bug, and no matter of packages.
        if error.name.partition(".")[0] == "bert":
            raise
        missing = packages.describe_missing(error.name)
        raise ModuleNotFoundError(missing, name=error.name) from None
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def _register() -> None:
    """Registers the classes of ours, for Keras to load models."""
    loading = [  # they import Keras: not all of them is defined
        name
        for name, module in sys.modules.items()
        if name.startswith("bert.")
        and getattr(module.__spec__, "_initializing", False)
    ]
    if any(name.startswith("bert.modeling.") for name in loading):
        return

    from bert.modeling import dropout, models, task_models  # noqa: F401

    if dropout.ON_TENSORFLOW:
        importlib.import_module(
            "bert.training.optimization" if loading else "bert.library"
        )


# Else TensorFlow's notes on missing devices would bury our messages.
tensorflow_log.hold_back_import()
tensorflow_log.after_import("keras", _register)
