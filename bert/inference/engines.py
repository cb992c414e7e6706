"""The Keras engine: computes the outputs of packed batches.

An engine is a function of the inputs of a packed encoder, int32 [R, W] and
[R, K]. It returns float32 [R, K, ...] for a head on `[CLS]`, and float32
[R, W, ...] for a head on tokens or without a head.
"""

from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

from bert.common import processes
from bert.common.errors import UserError
from bert.data import features
from bert.modeling import checkpoints, encoder, task_models
from bert.modeling.formats.model_folder import ModelFolder
from bert.training import distribution

_INPUTS = (*features.ENCODER_INPUTS, *features.PACKED_INPUTS)


class KerasEngine:
    """Engine that computes outputs with a Keras network.

    Args:
        network: Encoder. The encoder. The engine uses its current weights.
        head: keras.layers.Layer or None. Its head, named as in `HEADS`. None:
            the output is a layer of the encoder. Default: None.
        layer: int. See `task_models.packed_outputs`. Default: -1.

    Attributes:
        description: str. Device and number of threads; "" unless the engine
            was loaded.
    """

    description = ""

    def __init__(
        self,
        network: encoder.Encoder,
        head: keras.layers.Layer | None = None,
        layer: int = -1,
    ):
        def run(**inputs):
            outputs = task_models.packed_outputs(network, head, inputs, layer)
            return tf.cast(outputs, tf.float32)

        # Eagerly where `tf.config.run_functions_eagerly` asks for it.
        self._run: Callable = run
        if not tf.config.functions_run_eagerly():
            spec = tf.TensorSpec([None, None], tf.int32)
            traced = tf.function(run, autograph=False)
            specs = dict.fromkeys(_INPUTS, spec)
            self._run = traced.get_concrete_function(**specs)

    @classmethod
    def of(
        cls,
        network: encoder.Encoder,
        head: keras.layers.Layer | None = None,
        layer: int = -1,
    ) -> "KerasEngine":
        """Returns the cached engine of a network; see the class.

        Args:
            network, head, layer: see the class.
        """
        # LoRA and quantization replace variables, which needs a new graph.
        kept = network.__dict__.setdefault("_engines", {})
        variables = [*map(id, network.variables)]
        found = kept.get((head, layer))
        if found is None or found[0] != variables:
            found = kept[head, layer] = variables, cls(network, head, layer)
        return found[1]

    @classmethod
    def load(
        cls,
        model: ModelFolder,
        head: str | None = None,
        layer: int = -1,
    ) -> "KerasEngine":
        """Builds the network of a model's folder, with its weights.

        Args:
            model: ModelFolder. The folder.
            head: str or None. Key of `HEADS`, or None for no head. Default:
                None.
            layer: int. See the class.

        Raises:
            UserError: The weights are damaged, not finite or do not fit the
                config.
        """
        for name, value in model.values.items():
            if value.dtype.kind in "fV" and not np.isfinite(value).all():
                raise UserError(
                    f"{name}: NaN or infinite weights",
                    path=model.path,
                    fix="pass another checkpoint",
                )
        network = model.network(head)
        engine = cls(
            checkpoints.encoder_of(network),
            None if head is None else network.get_layer(head),
            layer,
        )
        strategy = distribution.make_strategy("one_device")
        engine.description = distribution.describe(strategy)
        return engine

    def __call__(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        """Computes the outputs of a packed batch; see the module.

        Args:
            inputs: dict. Name -> int32 array.

        Raises:
            UserError: See `processes.check_not_forked`.
        """
        processes.check_not_forked(processes.TENSORFLOW)
        return self._run(**{k: tf.constant(inputs[k]) for k in _INPUTS}).numpy()
