"""TF-Hub SavedModels: input names, loading, and a Keras layer.

TensorFlow only. TF-Hub's names are defined here. `bert/export/tf_hub.py`, which
writes these SavedModels, imports them.
"""

import atexit
import contextlib
import hashlib
import os
import tempfile
import threading
import zipfile

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from bert.common import processes, storage
from bert.common.errors import UserError
from bert.common.outputs import copy_folder
from bert.data import feature_names

NAMES = {
    feature_names.INPUT_IDS: "input_word_ids",
    feature_names.INPUT_MASK: "input_mask",
    feature_names.SEGMENT_IDS: "input_type_ids",
}
OURS = {theirs: ours for ours, theirs in NAMES.items()}
_GRAPH = "saved_model.pb"
_ASSETS = "assets/"  # in a saved Keras model
_trust = threading.local()


@contextlib.contextmanager
def trust_models(path: str | None = None):
    """Context in which saved Keras models may load their `HubEncoder`s.

    A saved Keras model contains SavedModels, which are not trusted by default:

        with tf_hub.trust_models("model.keras"):
            model = keras.saving.load_model("model.keras")

    Args:
        path: str or None. Saved model whose SavedModels are loaded. Default:
            None, load them from their original folders, which must still exist.

    Raises:
        UserError: the file is missing or damaged.
    """
    # Contexts may be nested: at the end the outer one is active again.
    outer = getattr(_trust, "given", None)
    _trust.given = {} if path is None else _unpack(path)
    try:
        yield
    finally:
        _trust.given = outer


def load(path: str, trust_model: bool = False):
    """Loads a SavedModel.

    Args:
        path: str. Folder of the SavedModel, on this machine.
        trust_model: bool. Must be True, since the graph runs as a program with
            the rights of the user. Default: False.

    Returns:
        The loaded object, such as `encoder(inputs, training=True)`,
        `encoder.mlm(inputs)`, `preprocessor.tokenize(strings)`.

    Raises:
        UserError: the SavedModel is not trusted, missing or damaged, or has
            weights that are not finite; or see `processes.check_not_forked`.
    """
    if not trust_model:
        raise UserError(
            "not loaded: a SavedModel's graph runs like a program",
            path=path,
            fix="if you trust its source, pass trust_model=True "
            "(--trust_model)",
        )

    with contextlib.suppress(ImportError):  # TPU hosts may not have it
        import tensorflow_text  # noqa: F401 registers its operations

    processes.check_not_forked(processes.TENSORFLOW)
    try:
        loaded = tf.saved_model.load(path)
    except Exception as error:  # damaged files raise various types
        raise UserError(f"cannot be loaded: {error}", path=path) from None

    for variable in getattr(loaded, "variables", ()):
        floats = variable.dtype.is_floating
        if floats and not np.isfinite(variable.numpy()).all():
            raise UserError(
                f"{variable.name} has weights that are NaN or infinite",
                path=path,
                fix="export a checkpoint with finite weights",
            )
    return loaded


@keras.saving.register_keras_serializable(package="bert")
class HubEncoder(keras.layers.Layer):
    """Trainable Keras layer of a TF-Hub BERT.

    Its input is a dict of int32 [B, S], with this project's or TF-Hub's names.
    It returns the outputs of the SavedModel, float32: pooled_output [B, H],
    sequence_output [B, S, H], encoder_outputs L times [B, S, H]. A layer
    that is not trainable is called with training=False.

    A saved Keras model contains the SavedModel and the weights, and can be
    moved. Load it inside `trust_models`.

        encoder = tf_hub.HubEncoder("encoder", trust_model=True)
        encoder(inputs)["pooled_output"].shape  # [B, H]

    Args:
        handle: str. Folder of the SavedModel.
        part: str or None. "mlm" selects the encoder with its masked LM head.
            It also takes masked_lm_positions, int32 [B, P], and returns
            mlm_logits [B, P, V]. Default: None, the encoder.
        trust_model: bool. Must be True, see `load`. Default: False.

    Attributes:
        module: loaded SavedModel.

    Raises:
        UserError: see `load`; or the SavedModel is not a trainable encoder.
    """

    def __init__(
        self,
        handle: str,
        part: str | None = None,
        trust_model: bool = False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.handle, self.part = handle, part
        self.module = load(handle, trust_model)
        self._digest = _digest(handle)
        self._network = (
            getattr(self.module, part, None) if part else self.module
        )
        self._names = _input_names(self._network, handle)

        # Keras only trains, counts and saves its own kind of variables.
        trained = {id(v) for v in self._network.trainable_variables}
        for variable in self._network.variables:
            self._track_variable(
                keras.Variable(
                    variable,
                    dtype=variable.dtype.name,
                    trainable=id(variable) in trained,
                    name=variable.name.split(":")[0].replace("/", "_"),
                )
            )

        self._build_at_init()

    def call(self, inputs, training=False):
        """Dict of int32 [B, S] -> dict of float32 tensors."""
        inputs = {NAMES.get(name, name): x for name, x in inputs.items()}

        outputs = self._network(
            {name: ops.cast(inputs[name], "int32") for name in self._names},
            training=bool(training) and self.trainable,
        )

        # TF-Hub's API has losses as functions without arguments.
        if self.trainable:
            for loss in self._network.regularization_losses:
                self.add_loss(loss())

        return outputs

    def save_assets(self, dir_path):
        """Copies the SavedModel, for `trust_models`."""
        if not storage.is_file(_graph(self.handle)):
            raise UserError(
                "is missing; the Keras model must contain it",
                path=self.handle,
                expected="the SavedModel of the layer",
            )
        copy_folder(self.handle, dir_path)

    def get_config(self):
        """The layer's arguments without `trust_model`; digest of the graph."""
        return {
            **super().get_config(),
            "handle": self.handle,
            "part": self.part,
            "graph": self._digest,
        }

    @classmethod
    def from_config(cls, config):
        """Loads the SavedModel again, inside `trust_models` only."""
        named = dict(config)
        digest = named.pop("graph", None)

        given = getattr(_trust, "given", None)
        if given:  # load only SavedModels from the trusted file
            if digest not in given:
                raise UserError("a SavedModel that is not in the trusted file")
            named["handle"] = given[digest]
        layer = cls(**named, trust_model=given is not None)

        # The folder may hold another model now.
        if layer._digest != digest:
            raise UserError(
                "not the SavedModel that the layer was saved with",
                path=layer.handle,
                fix='load inside tf_hub.trust_models("model.keras"), with the '
                "path of the saved model",
            )

        return layer


def _unpack(path: str) -> dict[str, str]:
    """Unpacks the SavedModels of a saved model, until the process ends.

    Returns:
        Dict: digest of the graph -> folder.
    """
    folder = tempfile.mkdtemp(prefix="bert-")
    atexit.register(storage.remove_folder, folder)
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.startswith(_ASSETS):
                    archive.extract(name, folder)
    except (OSError, zipfile.BadZipFile) as error:
        raise UserError(
            f"cannot be read: {error}", path=path, expected="a saved model"
        ) from None

    unpacked = {
        _digest(inside): inside
        for inside, _, files in storage.walk(folder)
        if _GRAPH in files
    }
    if not unpacked:
        raise UserError("holds no SavedModel", path=path)
    return unpacked


def _graph(folder: str) -> str:
    return os.path.join(folder, _GRAPH)


def _digest(folder: str) -> str:
    """SHA-256 of a SavedModel's graph, in hexadecimal."""
    with storage.open_file(_graph(folder), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _input_names(network, path: str) -> list[str]:
    """Input names of a reusable SavedModel."""
    wanted = f"a BERT with the inputs {', '.join(OURS)} and variables"
    call = network.__call__ if callable(network) else None
    functions = getattr(call, "concrete_functions", ())
    parts = ("variables", "trainable_variables", "regularization_losses")
    for function in functions:
        given = function.structured_input_signature[0]
        names = list(given[0]) if given and isinstance(given[0], dict) else []
        if set(OURS) <= set(names) and all(hasattr(network, p) for p in parts):
            return names
    raise UserError("no such object", path=path, expected=wanted)
