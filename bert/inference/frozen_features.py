"""Frozen features: outputs of an encoder before its fine-tuning.

features -> `tasks.classification.frozen.fit` -> the first weights of the head
"""

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from bert.data.labels import CLASSES
from bert.inference import teacher
from bert.inference.predictor import Predictor
from bert.modeling import checkpoints
from bert.modeling.engines.keras_engine import KerasEngine
from bert.tasks import evaluation
from bert.tasks.classification.glue import TextExample, labels_of
from bert.tasks.classification.task import TextClassification

_LEAST = 10  # labelled texts


def start_head(
    network: keras.Model,
    task: TextClassification,
    rows: list[TextExample],
    strategy: tf.distribute.Strategy | None = None,
) -> NDArray | None:
    """Adds a linear model of frozen features to the weights of a head.

    The random weights stay, so that all outputs differ in their gradients.

    Args:
        network: keras.Model. Network of `networks.build`, before fine-tuning.
        task: TextClassification. Task of its head.
        rows: list. Training examples; those without a label are not used.
        strategy: tf.distribute.Strategy or None. Devices to compute on.
            Default: None, TensorFlow's default device.

    Returns:
        float32 [C, H + 1], W and b of the linear model; or None for fewer than
        ten labelled texts, which change nothing.
    """
    from bert.tasks.classification import frozen  # imports scikit-learn

    labelled = [row for row in rows if row.label is not None]
    if len(labelled) < _LEAST:
        return None
    # In order, as long as all of them are drawn.
    drawn = np.sort(evaluation.drawn(len(labelled)))
    labelled = [labelled[i] for i in drawn]
    # Instead of a head, a layer that returns the pooled output.
    engine = KerasEngine(
        checkpoints.encoder_of(network),
        keras.layers.Identity(name=task.head),
        strategy=strategy,
    )
    features = np.stack(
        teacher.outputs(Predictor(task, engine), labelled, task, "features")
    )
    gold, weights = labels_of(labelled), None
    if task.class_weights and task.labels.kind == CLASSES:
        weights = np.array(task.class_weights)[gold]
    found = frozen.fit(
        features, gold, task.labels.kind, task.num_outputs, weights
    )
    layer = network.get_layer(task.head)
    layer.output_weights.assign_add(found[:, :-1])
    layer.output_bias.assign_add(found[:, -1])
    return found
