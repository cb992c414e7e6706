"""Computes the outputs of encoder layers with TensorFlow."""

import tensorflow as tf

from bert.common import flags
from bert.common.progress import log
from bert.modeling import checkpoints, encoder
from bert.tasks.features.settings import Extraction
from bert.training import distribution, prediction
from bert.training.settings import Devices


def make_predictor(extraction: Extraction):
    """Loads the encoder; returns a predictor of its layers' outputs.

    Args:
        extraction: checked settings, see `settings.check`.
    """
    settings = extraction.settings
    strategy = distribution.make_strategy(**flags.as_dict(settings, of=Devices))
    log(distribution.describe(strategy, "float32"))
    path = extraction.model.resolve()
    extraction.model.check_sizes()
    with strategy.scope():
        model = encoder.build_encoder(extraction.model.config)
    fresh = checkpoints.assign(
        checkpoints.encoder_variables(model),
        extraction.model.weights()[0],
        path,
    )
    if fresh:
        log(f"missing in {path}, but not needed: {', '.join(fresh)}")

    def vectors(batch):
        outputs = model(batch)
        every = outputs["encoder_outputs"]
        x = tf.stack(
            [every[layer] for layer in extraction.layers], 2
        )  # [B, S, K, H]
        if settings.layer_pooling == "concat":
            x = tf.concat(tf.unstack(x, axis=2), -1)  # [B, S, K * H]
        elif settings.layer_pooling != "none":
            mix = {"sum": tf.reduce_sum, "mean": tf.reduce_mean}
            x = mix[settings.layer_pooling](x, 2)
        return {"vectors": x}

    return prediction.Predictor(vectors, strategy, settings.batch_size)
