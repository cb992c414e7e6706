"""BERT on TensorFlow and Keras, as a library; see docs/library.md.

    import bert

    encoder, tokenizer = bert.load_encoder("uncased_L-12_H-768_A-12")
    vectors = encoder(tokenizer(["The cat sees the old house."]))

TensorFlow is imported when one of the names of `__all__` is first used, but for
`BertConfig` and `Tokenizer`, which do without. If `bert` is imported before
`tensorflow` and `keras`, they load without log messages about missing devices.
Keras knows the layers and the optimizer, in either order.
"""

import importlib
import sys

from bert.common import packages, tensorflow_log

__all__ = [
    "AdamWeightDecay",
    "BertConfig",
    "Encoder",
    "TextClassifier",
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
}


def __getattr__(name: str):
    """Returns a function or class of the library, imported late."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(_MODULES.get(name, "bert.library"))
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] == "bert":
            raise
        missing = packages.describe_missing(error.name)
        raise ModuleNotFoundError(missing, name=error.name) from None
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def _register() -> None:
    """Registers the layers and the optimizer, for Keras to load models."""
    loaded = {name for name in sys.modules if name.startswith("bert.modeling.")}
    if loaded - {"bert.modeling.config"}:
        return  # one of them imports Keras: not all of it is defined
    from bert.modeling import dropout, models, task_models  # noqa: F401

    if dropout.ON_TENSORFLOW:
        from bert.training import optimization  # noqa: F401


tensorflow_log.hold_back_import()
tensorflow_log.after_import("keras", _register)
