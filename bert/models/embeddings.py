"""Vectors of texts, in one call."""

import dataclasses
import os

import numpy as np

from bert.common.errors import UserError
from bert.common.formats import published
from bert.data import length_batches
from bert.data.pooling import POOLINGS, TextVectors
from bert.data.text.columns import strings
from bert.inference.predictor import Predictor, network_of, open_model
from bert.modeling.openvino_network import Network
from bert.tasks.similarity.pipeline import TextEmbedding

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
) -> np.ndarray:
    """Computes one vector of each text, from the outputs of a layer.

        vectors = bert.embed(["the cat", "a dog"], "model", normalize=True)
        similarities = vectors @ vectors.T

    Args:
        texts: one text, a list, an array or a column of a table.
        model: path of a model, as for `load_encoder`, or of its network for
            OpenVINO, which needs no TensorFlow; or its encoder and tokenizer,
            which are not loaded again then.
        layer: -1 is the last layer, -2 the one below, to -L.
        pooling: "mean" or "max" over the tokens, or "cls" for the first; None:
            as a folder of sentence-transformers says, else "mean".
        normalize: scale each vector to length 1; None: as the folder says,
            else not.
        prompt: name of a prompt of the folder, such as "query", which is put
            before each text; None: the folder's default.
        max_length: longer texts are truncated; default: the tokenizer's, at
            most the positions of the model.
        batch_size: texts of a batch; those of similar lengths share one.

    Returns:
        float32 [N, H]; [N, truncate_dim] if the folder has one.

    Raises:
        UserError: an argument is invalid, or the model cannot be loaded.
    """
    if pooling not in (None, *POOLINGS):
        raise UserError(f"pooling={pooling!r}", expected="mean, max or cls")

    texts = strings(texts, "texts")
    config, tokenizer, engine_of, recorded = _open(model)
    if not -config.num_hidden_layers <= layer <= -1:
        expected = f"-1 to -{config.num_hidden_layers}"
        raise UserError(f"layer={layer}", expected=expected)

    how = recorded or TextVectors()
    if pooling is not None:
        how = dataclasses.replace(how, pooling=pooling, mistake=None)
    if normalize is not None:
        how = dataclasses.replace(how, normalize=normalize)

    most = config.max_position_embeddings
    if max_length is None:
        max_length = min(tokenizer.max_length, most)
    length_batches.check_size(batch_size)
    if max_length not in range(3, most + 1):
        raise UserError(f"max_length={max_length}", expected=f"3 to {most}")

    task = TextEmbedding(tokenizer, how, max_length, prompt)
    encoded = task.encode([{"text": text} for text in texts])
    predictor, size = Predictor(task, engine_of(layer)), _CHUNK * batch_size
    found = [np.zeros((0, how.size(config.hidden_size)), np.float32)]
    for start in range(0, len(encoded), size):
        outputs = predictor.compute(encoded[start : start + size])
        found.append(np.stack([how.embed_one(x) for (x,) in outputs]))
    return np.concatenate(found)


def _open(model):
    """Opens a model.

    Returns:
        config, tokenizer, a function from a layer to its engine, and the
        recorded pooling or None.
    """
    is_path = isinstance(model, str | os.PathLike)
    if is_path:
        model = published.fetch(os.fspath(model))
    if is_path and (path := network_of(model)):
        folder = open_model(path)

        def network(layer: int) -> Network:
            if layer != -1:
                raise UserError(
                    f"layer={layer}",
                    path=path,
                    expected="-1: a network of OpenVINO has the last layer "
                    "alone",
                )
            return Network(path)

        tokenizer = folder.tokenizer.with_max_length(folder.max_length)
        return folder.config, tokenizer, network, folder.vectors

    from bert.inference.engines import KerasEngine  # imports TensorFlow
    from bert.models import loading

    encoder, tokenizer = loading.load_pair(model)
    return (
        loading.config_of(encoder),
        tokenizer,
        lambda layer: KerasEngine.of(encoder, layer=layer),
        encoder.checkpoint.vectors if encoder.checkpoint else None,
    )
