"""Vectors of texts, in one call."""

import dataclasses
import os

import numpy as np

from bert.common.errors import UserError
from bert.common.formats import published
from bert.data import features, length_batches
from bert.data.pooling import POOLINGS, TextVectors
from bert.data.text.columns import strings
from bert.modeling import openvino_network
from bert.modeling.formats.model_folder import ModelFolder

_WINDOW = 64  # batches that are sorted by length together


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
    config, tokenizer, vectors_of, recorded = _open(model, layer)
    if not -config.num_hidden_layers <= layer <= -1:
        expected = f"-1 to -{config.num_hidden_layers}"
        raise UserError(f"layer={layer}", expected=expected)

    how = recorded or TextVectors()
    if pooling is None:
        how.check()
    before = how.prompt(prompt)
    texts = [before + text for text in texts]
    how = dataclasses.replace(
        how,
        pooling=pooling or how.pooling,
        normalize=how.normalize if normalize is None else normalize,
    )

    most = config.max_position_embeddings
    if max_length is None:
        max_length = min(tokenizer.max_length, most)
    length_batches.check_size(batch_size)
    if max_length not in range(3, most + 1):
        raise UserError(f"max_length={max_length}", expected=f"3 to {most}")

    def run(batch):
        x = np.asarray(vectors_of(batch))
        return list(how.embed(x, batch[features.INPUT_MASK]))

    rows = length_batches.in_order(
        tokenizer.rows(texts, [""] * len(texts), max_length),
        run,
        length_batches.bucket_lengths(max_length),
        batch_size,
        _WINDOW * batch_size,
    )

    # Without texts, too, the result has two axes.
    embeddings = np.reshape(list(rows), (-1, how.size(config.hidden_size)))
    return embeddings.astype(np.float32)


def _open(model, layer: int):
    """Config, tokenizer, a function of a batch: float32 [B, S, H], and more.

    The last is how vectors are made, if it is recorded.
    """
    is_path = isinstance(model, str | os.PathLike)
    if is_path:
        model = published.fetch(os.fspath(model))
    if is_path and openvino_network.is_network(model):
        folder = ModelFolder.open(model)
        if layer != -1:
            raise UserError(
                f"layer={layer}",
                path=folder.path,
                expected="-1: a network of OpenVINO has the last layer alone",
            )
        folder.check()
        network = openvino_network.Network(folder.path)
        network.check(
            "sequence_output", folder.config.hidden_size, "an encoder"
        )
        tokenizer = folder.tokenizer.with_max_length(folder.max_length)
        return (
            folder.config,
            tokenizer,
            lambda batch: network(batch)["sequence_output"],
            folder.vectors,
        )

    from bert import encoders  # imports TensorFlow

    encoder, tokenizer = encoders.load_pair(model)
    return (
        encoders.config_of(encoder),
        tokenizer,
        lambda batch: encoder.predict_on_batch(batch)["encoder_outputs"][layer],
        encoder.checkpoint.vectors if encoder.checkpoint else None,
    )
