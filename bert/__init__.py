"""BERT on TensorFlow and Keras, as a library; see docs/library.md.

    import bert

    encoder, tokenizer = bert.load_encoder("uncased_L-12_H-768_A-12")
    vectors = encoder(tokenizer(["The cat sees the old house."]))

TensorFlow is imported at the first use of a name in `__all__`. Exceptions are
`BertConfig` and `Tokenizer`, which do not need it, and `embed`, which does not
need it for OpenVINO. The classes of this package are registered with Keras,
before or after `import keras`. Otherwise `import bert` only sets
`TF_ENABLE_ONEDNN_OPTS`, unless it is set.
"""

import importlib
import os
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

_MODULES = {  # names that do not need TensorFlow -> module
    "BertConfig": "bert.modeling.config",
    "Tokenizer": "bert.data.text.tokenizer",
    "embed": "bert.models.embeddings",
}


def __getattr__(name: str):
    """Returns a function or class of the library, imported on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = importlib.import_module(_MODULES.get(name, "bert.library"))
    except ModuleNotFoundError as error:
        # A missing bert.* module is a bug, not a missing dependency.
        missing = error.name or ""
        if missing.partition(".")[0] == "bert":
            raise
        message = packages.describe_missing(missing)
        raise ModuleNotFoundError(message, name=missing) from None
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])


def _register() -> None:
    """Registers the classes of this package, for Keras to load models."""
    loading = [  # modules that are importing Keras, so partly initialized
        name
        for name, module in sys.modules.items()
        if name.startswith("bert.")
        and getattr(module.__spec__, "_initializing", False)
    ]
    if any(name.startswith("bert.modeling.") for name in loading):
        return

    from bert.modeling import dropout, networks  # noqa: F401

    if dropout.ON_TENSORFLOW:
        importlib.import_module(
            "bert.training.optimization" if loading else "bert.library"
        )


if "tensorflow" not in sys.modules:
    # oneDNN's matrix products are a quarter faster on any x86; by default
    # TensorFlow uses them only with AVX-512.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
tensorflow_log.after_import("keras", _register)
