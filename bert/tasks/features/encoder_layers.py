"""Vectors of the layers of an encoder on TensorFlow."""

import dataclasses

import tensorflow as tf

from bert.common.progress import say
from bert.data import features
from bert.modeling import checkpoints, encoder
from bert.tasks.features.settings import Extraction
from bert.training import distribution, prediction


def make_predictor(extraction: Extraction):
    """Loads the encoder; returns a predictor of the vectors of its layers."""
    settings = extraction.settings
    strategy = distribution.make_strategy(
        **dataclasses.asdict(settings.devices)
    )
    say(distribution.describe(strategy, "float32"))
    path = extraction.model.resolve()
    with strategy.scope():
        model = encoder.build_encoder(extraction.model.config)
    fresh = checkpoints.assign(
        checkpoints.encoder_variables(model),
        extraction.model.weights()[0],
        path,
    )
    if fresh:
        say(f"not in {path}, and not needed: {', '.join(fresh)}")

    def vectors(batch):
        outputs = model(batch)
        every = outputs["encoder_outputs"]
        x = tf.stack(
            [every[layer] for layer in extraction.layers], 2
        )  # [B, S, K, H]
        if settings.mix_layers == "concat":
            x = tf.concat(tf.unstack(x, axis=2), -1)  # [B, S, K * H]
        elif settings.mix_layers != "none":
            mix = {"sum": tf.reduce_sum, "mean": tf.reduce_mean}
            x = mix[settings.mix_layers](x, 2)
        x = _pool(x, batch[features.INPUT_MASK], settings.pooling)
        return {
            "vectors": tf.nn.l2_normalize(x, -1) if settings.normalize else x
        }

    return prediction.Predictor(vectors, strategy, settings.batch_size)


def _pool(x, mask, pooling: str):
    """As `pooling.pool`, in the graph: less leaves the device."""
    if pooling == "none":
        return x
    if pooling == "cls":
        return x[:, 0]
    shape = tf.concat([tf.shape(mask), tf.ones(tf.rank(x) - 2, tf.int32)], 0)
    mask = tf.cast(tf.reshape(mask, shape), x.dtype)
    if pooling == "max":
        return tf.reduce_max(x + (1.0 - mask) * x.dtype.min, 1)
    return tf.reduce_sum(x * mask, 1) / tf.reduce_sum(mask, 1)
