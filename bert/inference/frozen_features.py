"""Frozen features: outputs of an encoder before its fine-tuning.

features -> `tasks.frozen.fit` -> the first weights of the head
words -> values for the word embeddings, if only they predict the labels
embeddings of pairs -> cosines, a baseline
"""

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from bert.data.labels import REGRESSION
from bert.data.pooling import PoolingConfig
from bert.inference.predictor import Predictor
from bert.modeling import checkpoints
from bert.modeling.engines.keras_engine import KerasEngine
from bert.tasks.classification.files import TextExample
from bert.tasks.classification.task import TextClassification
from bert.tasks.evaluation import COSINE
from bert.tasks.labelled_task import LabelledTask
from bert.tasks.recipe import FrozenHead
from bert.tasks.similarity.task import TextEmbedding, TextGroup

_LEAST = 10  # labels


def fit_head(
    encoder: keras.Model,
    task: LabelledTask,
    rows: list,
    strategy: tf.distribute.Strategy | None = None,
) -> FrozenHead | None:
    """Fits the head of a task to outputs of its encoder.

    Args:
        encoder: keras.Model. The encoder, before fine-tuning.
        task: LabelledTask. The task.
        rows: list. Training rows; those without a label are not used.
        strategy: tf.distribute.Strategy or None. Devices to compute on.
            Default: None, TensorFlow's default device.

    Returns:
        the head; or None for fewer than ten labels.
    """
    from bert.tasks import frozen  # imports scikit-learn

    labelled = task.rows_to_fit(rows)
    gold, weights = labelled.gold, labelled.weights
    if len(gold) < _LEAST:
        return None

    # Instead of a head, a layer that returns its input.
    identity = keras.layers.Identity(name=task.head)
    engine = KerasEngine(encoder, identity, strategy=strategy)
    examples = task.inputs_of(labelled.rows)

    def fit() -> FrozenHead:
        computed = Predictor(task, engine).compute_all(examples, "features")
        # [H] of each text, or [W, H] of the words of each sentence.
        features = np.vstack([outputs for _, outputs in computed])
        kind, size = task.labels.kind, task.num_outputs
        return frozen.fit(features, gold, kind, size, weights)

    head = fit()
    of_words = None if head.predicts else task.fit_words(labelled)
    if of_words is None:
        return head

    table = encoder.get_layer("embeddings").word_embeddings
    first = keras.ops.convert_to_numpy(table)
    words = frozen.word_embeddings(of_words, first)
    table.assign(first + words)
    start = fit().start
    table.assign(first)
    return head._replace(start=start, predicts=True, words=words)


def cosines(
    encoder: keras.Model,
    task: TextClassification,
    rows: list[TextExample],
    pooling: PoolingConfig,
    strategy: tf.distribute.Strategy | None = None,
) -> dict[str, float]:
    """Correlations of the cosines of pairs with their labels.

    Args:
        encoder, strategy: see `fit_head`.
        task: TextClassification. The task.
        rows: list. Examples, with labels.
        pooling: PoolingConfig. Makes an embedding of each text.

    Returns:
        dict. "metric/cosine" -> value, for numbers as labels of pairs; else {}.
    """
    pairs = [
        TextGroup([row.text, row.text_b], row.label)
        for row in rows
        if row.text_b
    ]
    if task.labels.kind != REGRESSION or len(pairs) < len(rows):
        return {}

    embedding = TextEmbedding(
        task.tokenizer,
        pooling.resolve(normalize=True),
        task.max_length,
        has_scores=True,
    )
    engine = KerasEngine(encoder, None, strategy=strategy)
    predictor = Predictor(embedding, engine)
    computed = predictor.compute_all(embedding.inputs_of(pairs), "cosines")
    encoded, vectors = zip(*computed)

    found = embedding.score(pairs, encoded, vectors).metrics
    return {
        f"{name}/{COSINE}": found[f"{name}_cosine"]
        for name in task.metrics
        if f"{name}_cosine" in found
    }


def add_start(network: keras.Model, head: str, fitted: FrozenHead) -> None:
    """Adds the first weights of `FrozenHead` to a network with a new head.

    The random weights stay, so that all outputs differ in their gradients.

    Args:
        network: keras.Model. Network of `networks.build`.
        head: str. Key of `HEADS`, its head.
        fitted: FrozenHead. Result of `fit_head`.
    """
    layer = network.get_layer(head)
    layer.output_weights.assign_add(fitted.start[:, :-1])
    layer.output_bias.assign_add(fitted.start[:, -1])
    if fitted.words is not None:
        embeddings = checkpoints.encoder_of(network).get_layer("embeddings")
        embeddings.word_embeddings.assign_add(fitted.words)


def set_head(network: keras.Model, head: str, weights: NDArray) -> None:
    """Gives a head the weights of `FrozenHead`.

    Args:
        network, head: see `add_start`.
        weights: float32 [C, H + 1]. `FrozenHead.weights`, W and b.
    """
    layer = network.get_layer(head)
    layer.output_weights.assign(weights[:, :-1])
    layer.output_bias.assign(weights[:, -1])
