"""SavedModels of fine-tuned models, for TF Serving.

    classifier        text (and text_b) -> label, probabilities, label_names
    embedding model   text -> vector
    other tasks       the encoder's inputs -> logits

To load a SavedModel, TensorFlow and, for text, TensorFlow Text are needed, but
not this project. Post-processing of answers, words and choices, and windows of
long texts, are only in `Predictor`, which reads the same folder.
"""

from collections.abc import Callable

import keras
import tensorflow as tf

from bert.data import feature_names, sequences
from bert.data.labels import CLASSES, KINDS, MULTI_LABEL, Labels
from bert.data.sequences import LongTexts
from bert.data.text import input_ops, text_ops
from bert.data.text.tokenizer import Tokenizer
from bert.modeling import checkpoints, heads
from bert.modeling.formats.model import Model
from bert.modeling.precision import stored_in
from bert.modeling.task_heads import head_of

TEXT, TEXT_B, VECTOR = "text", "text_b", "vector"


class Untracked:
    """Hides an object from SavedModel, so that its functions are not saved.

    Args:
        value: keras.Model or GraphTokenizer. The object.
    """

    def __init__(self, value: keras.Model | text_ops.GraphTokenizer):
        self.value = value


class FineTunedModel(tf.train.Checkpoint):
    """A fine-tuned model and its tokenizer, to be saved as a SavedModel.

    The outputs of a classifier are:

    - label: string [B], "" below the minimum probability; with several labels
      per text, string [B, C], padded with "".
    - probabilities: float32 [B, C].
    - label_names: string [B, C], the same names in each row.

    A regression has only the output value, float32 [B].

    Args:
        model: Model. Weights, tokenizer and task; its texts need a tokenizer.
        precision: str. Precision in which the weights are stored. Default:
            "float32".

    Attributes:
        names: list of str. Names of the attributes that are signatures.
        serve: the signature `serving_default`, see the module.
        tokens: classifiers only; a signature that takes the encoder's inputs,
            int32 [B, S].
        examples: classifiers only; a signature that takes serialized
            tf.train.Examples, string [B].
        weights: dict. Original name -> variable.
        vocab_file: the vocabulary, as an asset.
        do_lower_case, strip_accents: variables, casing of the vocabulary.
    """

    def __init__(self, model: Model, precision: str = "float32"):
        super().__init__()
        with stored_in(precision):
            network = model.network(head_of(model.values))

        # The readers of checkpoints find the weights by name.
        named = checkpoints.model_variables(network)
        self.weights = {name: x.value for name, x in named.items()}
        tokenizer = model.tokenizer
        assert tokenizer, "only models with a tokenizer are exported"
        self.vocab_file = tf.saved_model.Asset(tokenizer.path)
        record_casing(self, tokenizer)

        self._model = Untracked(network)
        self._tokenizer = Untracked(tokenizer.graph)
        self._max_length = tokenizer.max_length
        task = model.task_json or {}
        self._long_texts = LongTexts.of_task(task)

        self.names = ["serve"]
        if task.get("kind") in KINDS:
            self._labels = Labels.of_task(task)
            texts = (TEXT, TEXT_B) if task.get("pairs") else (TEXT,)
            self._add_classifier(texts)
        elif model.pooling_config:
            self._how = model.pooling_config
            self.serve = _text_signature(self._embed, (TEXT,))
        else:
            specs = {
                name: tf.TensorSpec(x.shape, tf.int32)
                for name, x in network.input.items()
            }
            self.serve = signature(lambda **x: self._outputs(x), specs)

    def _add_classifier(self, texts: tuple[str, ...]) -> None:
        ids = tf.TensorSpec([None, None], tf.int32)
        self.tokens = signature(
            lambda **inputs: self._classify(inputs),
            dict.fromkeys(feature_names.ENCODER_INPUTS, ids),
        )

        # The other signatures call this one, so the network is traced once.
        self.examples = signature(
            lambda examples: self.tokens(**_parse(examples)),
            {"examples": tf.TensorSpec([None], tf.string)},
        )
        self.names = ["serve", "tokens", "examples"]

        # Only `Predictor` pools the windows of a text.
        self.serve = self.tokens
        if not self._long_texts.pool:
            self.serve = _text_signature(
                lambda **strings: self.tokens(
                    **self._pack([strings[name] for name in texts])
                ),
                texts,
            )

    def _outputs(self, inputs: dict) -> dict[str, tf.Tensor]:
        return self._model.value(inputs, training=False)

    def _pack(self, strings: list[tf.Tensor]) -> dict[str, tf.Tensor]:
        """Converts texts, string [B] each, to the encoder's inputs."""
        tokenizer = self._tokenizer.value
        segments = [tokenizer.tokenize(x).merge_dims(1, 2) for x in strings]

        def packed_in(some):
            return pack(
                tokenizer, some, self._max_length, self._long_texts.truncate
            )

        packed = packed_in(segments)
        if len(segments) == 2:  # an empty second text has no [SEP]
            empty = segments[1].row_lengths() == 0
            single = packed_in(segments[:1])
            packed = {
                name: tf.where(empty[:, tf.newaxis], single[name], x)
                for name, x in packed.items()
            }
        return _trim(packed)

    def _embed(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        how = self._how
        inputs = self._pack([how.prompt(None) + text])
        x = self._outputs(inputs)["sequence_output"]
        mask = inputs[feature_names.INPUT_MASK][:, tf.newaxis]
        pool = heads.PoolTexts(how.pooling, dtype="float32")
        vector = pool(x, mask)[:, 0, : how.truncate_dim]
        if how.normalize:
            vector = tf.math.l2_normalize(vector, -1)
        return {VECTOR: vector}

    def _classify(self, inputs: dict) -> dict[str, tf.Tensor]:
        logits = tf.cast(self._outputs(inputs)["logits"], tf.float32)
        return _predictions(logits, self._labels)


def _predictions(logits: tf.Tensor, labels: Labels) -> dict[str, tf.Tensor]:
    """Converts logits, [B, C], to predictions, as `postprocessing` does."""
    decision, names = labels.decision, tf.constant(labels.names, tf.string)
    shifted = logits
    if decision.log_weights:
        shifted = logits - tf.constant(decision.log_weights, tf.float32)

    margins, scaled = shifted, shifted / decision.temperature
    if decision.thresholds:
        margins = logits - tf.constant(decision.thresholds, tf.float32)

    if labels.kind == CLASSES:
        probabilities = tf.nn.softmax(scaled)
        best = tf.argmax(margins, -1)
        label = tf.gather(names, best)
        if limit := decision.unknown_below:
            probability = tf.gather(probabilities, best, batch_dims=1)
            label = tf.where(probability < limit, "", label)
    elif labels.kind == MULTI_LABEL:
        probabilities = tf.sigmoid(scaled)

        # A logit of 0 is a probability of 0.5.
        chosen = tf.RaggedTensor.from_row_lengths(
            tf.gather(names, tf.where(margins >= 0)[:, 1]),
            tf.reduce_sum(tf.cast(margins >= 0, tf.int64), -1),
        )
        label = chosen.to_tensor(shape=[None, labels.size])
    else:
        return {"value": logits[:, 0]}

    # With the names in each row, a client needs no other file.
    size = tf.shape(logits)[0]
    return {
        "label": label,
        "probabilities": probabilities,
        "label_names": tf.tile(names[tf.newaxis], [size, 1]),
    }


def _parse(examples: tf.Tensor) -> dict[str, tf.Tensor]:
    """Parses records to the encoder's inputs."""
    ragged = tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64)
    parsed = tf.io.parse_example(
        examples, dict.fromkeys(feature_names.ENCODER_INPUTS, ragged)
    )
    return {
        name: tf.cast(values.to_tensor(), tf.int32)
        for name, values in parsed.items()
    }


def _trim(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Removes the trailing columns that are padding in all sequences."""
    lengths = tf.reduce_sum(inputs[feature_names.INPUT_MASK], -1)
    longest = tf.maximum(1, tf.reduce_max(lengths))
    return {name: x[:, :longest] for name, x in inputs.items()}


def pack(
    tokenizer: text_ops.GraphTokenizer,
    segments: list[tf.RaggedTensor],
    max_length: int,
    truncate: str = sequences.HEAD,
) -> dict[str, tf.Tensor]:
    """Packs segments with the special ids of a tokenizer.

    Args:
        tokenizer: GraphTokenizer. Has the ids of `[CLS]`, `[SEP]` and `[PAD]`.
        segments: list of one or two RaggedTensors, see
            `input_ops.pack_inputs`.
        max_length: int. S, the length of the sequences.
        truncate: str. Part of a long segment to keep. Default: "head".
    """
    return input_ops.pack_inputs(
        segments,
        max_length,
        cls_id=tokenizer.cls_id,
        sep_id=tokenizer.sep_id,
        pad_id=tokenizer.pad_id,
        truncate=truncate,
    )


def record_casing(root: tf.train.Checkpoint, tokenizer: Tokenizer) -> None:
    """Adds the variables `do_lower_case` and `strip_accents` to a root."""
    root.do_lower_case = tf.Variable(
        tokenizer.do_lower_case, trainable=False, name="do_lower_case"
    )
    root.strip_accents = tf.Variable(
        tokenizer.strips_accents, trainable=False, name="strip_accents"
    )


def _text_signature(function: Callable, texts: tuple[str, ...]):
    """Traces a function of named texts, string [B] each."""
    spec = tf.TensorSpec([None], tf.string)
    return signature(function, dict.fromkeys(texts, spec))


def signature(function: Callable, inputs: dict[str, tf.TensorSpec]):
    """Traces a function of named tensors.

    Args:
        function: callable. Takes the tensors as keyword arguments.
        inputs: dict. Name -> TensorSpec of each argument.

    Returns:
        the tf.ConcreteFunction.
    """
    named = {
        name: tf.TensorSpec(spec.shape, spec.dtype, name)
        for name, spec in inputs.items()
    }
    return tf.function(function, autograph=False).get_concrete_function(**named)


def save(root: tf.train.Checkpoint, folder: str, *others: str) -> None:
    """Writes a SavedModel with the signature `serving_default`, `root.serve`.

    Args:
        root: tf.train.Checkpoint. The object to save.
        folder: str. Path of a folder that does not exist.
        *others: str. Names of attributes that are further signatures.
    """
    signatures = {name: getattr(root, name) for name in others}
    signatures["serving_default"] = root.serve
    tf.saved_model.save(root, folder, signatures=signatures)
