"""Filled masks and vectors of texts, in one call."""

import numpy as np
import tensorflow as tf

from bert import heads
from bert.common.errors import UserError
from bert.data import batching, features
from bert.data.text import vocabulary
from bert.data.text.columns import strings
from bert.data.text.tokenizer import Tokenizer
from bert.encoders import Encoder, config_of, load_pair
from bert.tasks.features import run as vectors
from bert.tasks.fill_mask import run as masks

Loaded = tuple[Encoder, Tokenizer]
_HEAD = "cls/predictions/"
_WINDOW = 64  # batches that are sorted by length together


def fill_mask(
    text: str,
    model: str | Loaded,
    top_k: int = 5,
    words: str | list[str] | None = None,
) -> list[list[tuple[str, float]]]:
    """Predicts the words for each `[MASK]` of a text.

        bert.fill_mask("the [MASK] sees", "model")[0]  # [("cat", 0.3), ...]

    Args:
        text: a text with one or several `[MASK]`.
        model: path of a model with a masked-LM head, as for `load_encoder`;
            or its encoder and tokenizer. The head is that of the path, also
            if the encoder was trained since.
        top_k: number of words for each mask.
        words: return the probabilities of these words instead.

    Returns:
        for each mask, (word, probability), best first.

    Raises:
        UserError: there is no mask or no such head, the text is too long, or
            a word is not a token of the vocabulary.
    """
    if top_k < 1:
        raise UserError(f"top_k={top_k}", expected="1 or more")
    if not isinstance(text, str):
        raise UserError(f"text is {text!r:.60}", expected="a str")
    chosen = [] if words is None else strings(words, "words")
    if words is not None and not chosen:
        raise UserError("no words", expected="at least one")

    # A new encoder has no checkpoint, so no head.
    encoder, tokenizer = load_pair(model)
    path, weights = "the encoder", ()
    if encoder.checkpoint:
        path, weights = encoder.checkpoint.path, encoder.checkpoint.values
    if not any(name.startswith(_HEAD) for name in weights):
        raise UserError(
            "no masked-LM head",
            path=path,
            expected="a checkpoint of pre-training",
        )
    if vocabulary.MASK not in text:
        raise UserError(
            f"{text[:60]!r} has no mask",
            expected=f"{vocabulary.MASK} in the position of a word",
        )

    # The arguments are checked before the network is built.
    tokens = masks.tokenize(text, tokenizer.exact)
    masks.check_length(tokens, config_of(encoder))
    chosen = masks.tokens_of_words(chosen, tokenizer.exact)
    network = heads.masked_lm(encoder)
    return masks.fill(network, tokenizer.exact, tokens, top_k, chosen)


def embed(
    texts: str | list[str],
    model: str | Loaded,
    *,
    layer: int = -1,
    pooling: str = "mean",
    normalize: bool = False,
    max_length: int | None = None,
    batch_size: int = 32,
) -> np.ndarray:
    """Computes one vector of each text, from the outputs of a layer.

        vectors = bert.embed(["the cat", "a dog"], "model", normalize=True)
        similarities = vectors @ vectors.T

    Args:
        texts: one text, a list, an array or a column of a table.
        model: path of a model, as for `load_encoder`; or its encoder and
            tokenizer, which are not loaded again then.
        layer: -1 is the last layer, -2 the one below, to -L.
        pooling: "mean" or "max" over the tokens, or "cls" for the first.
        normalize: scale each vector to length 1.
        max_length: longer texts are truncated; default: the tokenizer's, at
            most the positions of the model.
        batch_size: texts of a batch; those of similar lengths share one.

    Returns:
        float32 [N, H].

    Raises:
        UserError: an argument is invalid, or the model cannot be loaded.
    """
    if pooling not in ("mean", "max", "cls"):
        raise UserError(f"pooling={pooling!r}", expected="mean, max or cls")

    encoder, tokenizer = load_pair(model)
    texts = strings(texts, "texts")
    config = config_of(encoder)
    if not -config.num_hidden_layers <= layer <= -1:
        expected = f"-1 to -{config.num_hidden_layers}"
        raise UserError(f"layer={layer}", expected=expected)

    most = config.max_position_embeddings
    if max_length is None:
        max_length = min(tokenizer.max_length, most)
    batching.check_size(batch_size)
    if max_length not in range(3, most + 1):
        raise UserError(f"max_length={max_length}", expected=f"3 to {most}")

    def run(batch):
        outputs = encoder.predict_on_batch(batch)["encoder_outputs"][layer]
        mask = batch[features.INPUT_MASK]
        pooled = vectors.pool(tf.constant(outputs), mask, pooling)
        return list(pooled.numpy())

    rows = batching.in_order(
        tokenizer.rows(texts, [""] * len(texts), max_length),
        run,
        batching.bucket_lengths(max_length),
        batch_size,
        _WINDOW * batch_size,
    )

    # Of no texts, too, the shape is [0, H].
    embeddings = np.reshape(list(rows), (-1, config.hidden_size))
    embeddings = embeddings.astype(np.float32)
    if normalize:
        embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    return embeddings
