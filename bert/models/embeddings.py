"""Embeddings of texts in one call."""

import os

import numpy as np
from numpy.typing import NDArray

from bert.common.errors import UserError
from bert.common.formats import downloads
from bert.data import bucketing
from bert.data.pooling import POOLINGS, PoolingConfig
from bert.data.text.array_inputs import strings
from bert.inference.predictor import Predictor, open_model
from bert.modeling.engines import openvino_engine
from bert.modeling.engines.openvino_engine import OpenVINOEngine
from bert.modeling.formats.model_folder import ModelFolder
from bert.tasks.similarity.task import TextEmbedding

_CHUNK = 32  # batches that are sorted by length together


def embed(
    texts: str | list[str],
    model,
    *,
    layer: int = -1,
    pooling: str | None = None,
    normalize: bool | None = None,
    prompt: str | None = None,
    max_length: int | None = None,
    batch_size: int = 32,
) -> NDArray:
    """Computes an embedding of each text, by pooling the outputs of a layer.

        vectors = bert.embed(["the cat", "a dog"], "model", normalize=True)
        similarities = vectors @ vectors.T  # cosines, [2, 2]

    Models of sentence-transformers are computed with their recorded pooling,
    normalization and prompts. For labels instead of embeddings use
    `bert.TextClassifier`.

    Args:
        texts: str, list, array or column. The texts.
        model: str or (Encoder, Tokenizer). Path or name of a model, see
            `load_encoder`, or path of an OpenVINO network, which needs no
            TensorFlow. A loaded pair saves the time of loading it again.
        layer: int. Layer of the encoder, from -1 for the last to -L for the
            first. Default: -1.
        pooling: str or None. "mean" or "max" over the tokens, or "cls" for
            the first token. Default: as recorded in the model, else "mean".
        normalize: bool or None. Whether to scale embeddings to length 1.
            Default: as recorded in the model, else False.
        prompt: str or None. Name of a prompt of the model, such as "query",
            whose text is prepended to each text. Default: the default prompt
            of the model, if it has one.
        max_length: int or None. Longest input in tokens; longer texts are
            truncated. Default: as recorded in the tokenizer, at most the
            number of positions of the model.
        batch_size: int. Texts are sorted by length in chunks of 32 batches.
            Default: 32.

    Returns:
        float32 [N, H], or [N, truncate_dim] if the model records one.

    Raises:
        UserError: An argument is invalid, or the model cannot be loaded.
    """
    if pooling not in (None, *POOLINGS):
        raise UserError(f"pooling={pooling!r}", expected="mean, max or cls")

    texts = strings(texts, "texts")
    config, tokenizer, make_engine, recorded = _open(model, layer)
    if not -config.num_hidden_layers <= layer <= -1:
        expected = f"-1 to -{config.num_hidden_layers}"
        raise UserError(f"layer={layer}", expected=expected)

    how = (recorded or PoolingConfig()).resolve(pooling, normalize)
    most = config.max_position_embeddings
    if max_length is None:
        max_length = min(tokenizer.max_length, most)
    bucketing.check_size(batch_size)
    if max_length not in range(3, most + 1):
        raise UserError(f"max_length={max_length}", expected=f"3 to {most}")

    task = TextEmbedding(tokenizer, how, max_length, prompt)
    encoded = task.encode([{"text": text} for text in texts])
    predictor, size = Predictor(task, make_engine()), _CHUNK * batch_size
    found = [np.zeros((0, how.size(config.hidden_size)), np.float32)]
    for start in range(0, len(encoded), size):
        computed = predictor.compute(encoded[start : start + size])
        found.append(np.stack([x for _, x in computed]))
    return np.concatenate(found)


def _open(model, layer: int):
    """Opens a model.

    Args:
        model, layer: see `embed`.

    Returns:
        config, tokenizer, a function that makes the engine, and the pooling
        configuration or None.
    """
    if isinstance(model, str | os.PathLike):
        model = downloads.fetch(os.fspath(model))

        # A network has the logits of its task, or the last layer.
        if (
            layer == -1
            and ModelFolder.open(model).task_json is None
            and (path := openvino_engine.find_default(model))
        ):
            folder = open_model(path)
            return (
                folder.config,
                folder.tokenizer.with_max_length(folder.max_length),
                lambda: OpenVINOEngine(path),
                folder.pooling_config,
            )

    from bert.modeling.engines.keras_engine import (
        KerasEngine,  # imports TensorFlow
    )
    from bert.models import loading

    encoder, tokenizer = loading.load_pair(model)
    return (
        loading.config_of(encoder),
        tokenizer,
        lambda: KerasEngine.of(encoder, layer=layer),
        encoder.checkpoint.pooling_config if encoder.checkpoint else None,
    )
