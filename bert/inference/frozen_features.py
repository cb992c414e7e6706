"""Frozen features: outputs of an encoder before its fine-tuning.

features -> `tasks.classification.frozen.fit` -> the first weights of the head
"""

import keras
import numpy as np
import tensorflow as tf

from bert.data.labels import CLASSES
from bert.inference import teacher
from bert.inference.predictor import Predictor
from bert.modeling.encoder import Encoder
from bert.modeling.engines.keras_engine import KerasEngine
from bert.tasks.classification.glue import TextExample, labels_of
from bert.tasks.classification.task import TextClassification

_LEAST = 10  # labelled texts


def head(
    task: TextClassification,
    encoder: Encoder,
    rows: list[TextExample],
    strategy: tf.distribute.Strategy | None = None,
) -> np.ndarray | None:
    """Fits the weights of a head to the outputs of a frozen encoder.

    Args:
        task: TextClassification. Task of the head.
        encoder: Encoder. The encoder, with the weights before fine-tuning.
        rows: list. Training examples; those without a label are not used.
        strategy: tf.distribute.Strategy or None. Devices to compute on.
            Default: None, TensorFlow's default device.

    Returns:
        float32 [C, H + 1], W and b of the head; or None for fewer than ten
        labelled texts.
    """
    from bert.tasks.classification import frozen  # imports scikit-learn

    labelled = [row for row in rows if row.label is not None]
    if len(labelled) < _LEAST:
        return None
    labelled = labelled[: frozen.MAX_FITTED]
    # Instead of a head, a layer that returns the pooled output.
    engine = KerasEngine(
        encoder, keras.layers.Identity(name=task.head), strategy=strategy
    )
    features = np.stack(
        teacher.outputs(Predictor(task, engine), labelled, task, "features")
    )
    gold, weights = labels_of(labelled), None
    if task.class_weights and task.labels.kind == CLASSES:
        weights = np.array(task.class_weights)[gold]
    return frozen.fit(
        features, gold, task.labels.kind, task.num_outputs, weights
    )
