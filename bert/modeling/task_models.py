"""Fine-tuning models: encoder and heads."""

import keras
from keras import ops

from bert.common.errors import UserError
from bert.data import features
from bert.modeling import heads, layers
from bert.modeling.config import BertConfig
from bert.modeling.encoder import build_encoder
from bert.modeling.task_heads import CHOICES, CLASSIFIER, SPANS, TOKENS

_NO_TOKEN = -1e9  # added to the vectors of padding
POOLED_DROPOUT = 0.1  # below the head; fixed in the original


@keras.saving.register_keras_serializable("bert")
class Classifier(keras.Model):
    """Functional model of `build_classifier`, whose outputs are logits."""

    def compile(
        self,
        optimizer="rmsprop",
        loss=None,
        loss_weights=None,
        metrics=None,
        **kwargs,
    ):
        """As in `keras.Model`, with a loss of logits.

        Args:
            optimizer: the optimizer.
            loss: of logits; None: cross-entropy, with accuracy as the metric,
                or the squared error of regression.
            loss_weights: of Keras.
            metrics: of Keras.
            **kwargs: of Keras.

        Raises:
            UserError: the loss takes probabilities.
        """
        if loss is None:
            loss, usual_metrics = default_loss(self.output["logits"].shape[-1])
            metrics = usual_metrics if metrics is None else metrics
        check_loss(loss)
        super().compile(optimizer, loss, loss_weights, metrics, **kwargs)

    def compile_from_config(self, config):
        """Compiles a model that is loaded, and builds its optimizer."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)


def default_loss(
    num_labels: int, is_multi_label: bool = False
) -> tuple[keras.Loss, list | None]:
    """Returns the loss and the metrics of a `compile` that names none.

    Args:
        num_labels: C of logits [B, C]; 1 for regression.
        is_multi_label: whether an example may have several labels.
    """
    if is_multi_label:
        accuracy = keras.metrics.BinaryAccuracy("accuracy", threshold=0.0)
        return keras.losses.BinaryCrossentropy(from_logits=True), [accuracy]
    if num_labels == 1:
        return keras.losses.MeanSquaredError(), None
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return loss, ["accuracy"]


def check_loss(loss) -> None:
    """Rejects a loss of probabilities.

    Args:
        loss: a loss, its name or its function; or a structure of them.

    Raises:
        UserError: it is a cross-entropy without from_logits=True.
    """
    # Functions and names of Keras take probabilities by default.
    for part in map(keras.losses.get, keras.tree.flatten(loss)):
        name = getattr(part, "__name__", part)
        if isinstance(part, keras.Loss):
            is_wrong = part.get_config().get("from_logits") is False
        else:
            is_wrong = "crossentropy" in str(name).lower()
        if is_wrong:
            raise UserError(
                f"the loss {name!r:.60} takes probabilities",
                expected="a loss of logits",
                fix="pass no loss, or one with from_logits=True",
            )


def build_classifier(
    config: BertConfig,
    num_labels: int,
    seed: int = 12345,
    packed: bool = False,
    encoder: keras.Model | None = None,
) -> keras.Model:
    """Builds the encoder with a classifier on `[CLS]`.

    Args:
        config: sizes.
        num_labels: C; 1 for regression.
        seed: of the initial weights.
        packed: whether a row holds several sequences.
        encoder: an encoder of this config; None: a new one.

    Returns:
        a functional model that takes the encoder's inputs and returns a
        dict: logits, float32 [B, C]; if `packed`, [B, K, C].
    """
    encoder = encoder or build_encoder(config, seed, packed)
    pooled = _pooled_output(encoder, encoder.input)
    logits = _scores(pooled, config, seed, num_labels, "classifier")
    return Classifier(encoder.input, {"logits": logits}, name="sentence")


def build_span_model(
    config: BertConfig, seed: int = 12345, encoder: keras.Model | None = None
) -> keras.Model:
    """Builds the encoder with start and end scores for question answering.

    Args:
        config: sizes.
        seed: of the initial weights.
        encoder: an encoder of this config; None: a new one.

    Returns:
        a functional model that takes the encoder's inputs and returns a
        dict: start_logits and end_logits, float32 [B, S] each.
    """
    encoder = encoder or build_encoder(config, seed)
    _freeze_pooler(encoder)
    sequence = encoder(encoder.input)["sequence_output"]
    logits = heads.OutputHead(config, seed, 2, "squad")(sequence)  # [B, S, 2]
    outputs = {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}
    return keras.Model(encoder.input, outputs, name="span")


def build_token_classifier(
    config: BertConfig,
    num_labels: int,
    seed: int = 12345,
    encoder: keras.Model | None = None,
) -> keras.Model:
    """Builds the encoder with a classifier on every token.

    Args:
        config: sizes.
        num_labels: C.
        seed: of the initial weights.
        encoder: an encoder of this config; None: a new one.

    Returns:
        a functional model that takes the encoder's inputs and returns a
        dict: logits, float32 [B, S, C].
    """
    encoder = encoder or build_encoder(config, seed)
    _freeze_pooler(encoder)
    sequence = encoder(encoder.input)["sequence_output"]
    logits = _scores(sequence, config, seed, num_labels, "ner")
    return keras.Model(encoder.input, {"logits": logits}, name="token")


def build_choice_model(config: BertConfig, seed: int = 12345) -> keras.Model:
    """Builds the encoder with a score of each choice.

    The head has no bias, which would cancel out in the softmax over choices.

    Args:
        config: sizes.
        seed: of the initial weights.

    Returns:
        a functional model that takes the encoder's inputs as int32
        [B, C, S] and returns a dict: logits, float32 [B, C].
    """
    encoder = build_encoder(config, seed)
    inputs = {
        name: keras.Input((None, None), dtype="int32", name=name)
        for name in encoder.input
    }

    # The encoder sees each choice as a sequence of its own.
    fold = FoldChoices(name="fold")
    folded = {name: fold(x) for name, x in inputs.items()}  # [B * C, S]
    pooled = _pooled_output(encoder, folded)
    scores = _scores(pooled, config, seed, 1, "swag", bias=False)  # [B * C, 1]
    # Scores stay float32, so that close ones are not rounded to ties.
    unfold = UnfoldChoices(name="unfold", dtype="float32")
    logits = unfold(scores, inputs[features.INPUT_IDS])
    return keras.Model(inputs, {"logits": logits}, name="choice")


def build_similarity_model(
    config: BertConfig, pooling: str, seed: int = 12345
) -> keras.Model:
    """Builds the encoder with a vector of each text.

    Args:
        config: sizes.
        pooling: "cls" for the vector of the first token, "mean" or "max" over
            all tokens.
        seed: of the initial weights.

    Returns:
        a functional model that takes the encoder's inputs as int32
        [B, T, S], T texts, and returns a dict: vectors, float32 [B, T, H].
    """
    encoder = build_encoder(config, seed)
    _freeze_pooler(encoder)
    inputs = {
        name: keras.Input((None, None), dtype="int32", name=name)
        for name in encoder.input
    }
    fold = FoldChoices(name="fold")
    folded = {name: fold(x) for name, x in inputs.items()}  # [B * T, S]
    pool = PoolTexts(pooling, name="pool", dtype="float32")
    sequence = encoder(folded)["sequence_output"]
    vectors = pool(sequence, inputs[features.INPUT_MASK])
    return keras.Model(inputs, {"vectors": vectors}, name="similarity")


@keras.saving.register_keras_serializable("bert")
class PoolTexts(keras.layers.Layer):
    """Pools the vectors of tokens, and unfolds the texts of the batch.

    Args:
        pooling: "cls", "mean" or "max".
    """

    def __init__(self, pooling: str, **kwargs):
        super().__init__(**kwargs)
        self.pooling = pooling

    def call(self, x, mask):
        """[B * T, S, H] and int32 [B, T, S] -> [B, T, H]."""
        shape = (*ops.shape(mask)[:2], x.shape[-1])
        if self.pooling == "cls":
            return ops.reshape(x[:, 0], shape)

        weight = ops.reshape(ops.cast(mask, x.dtype), (-1, ops.shape(x)[1], 1))
        if self.pooling == "max":
            pooled = ops.max(x + (1.0 - weight) * _NO_TOKEN, 1)
        else:
            pooled = ops.sum(x * weight, 1) / ops.sum(weight, 1)
        return ops.reshape(pooled, shape)

    def get_config(self):
        """The layer's arguments."""
        return {**super().get_config(), "pooling": self.pooling}


@keras.saving.register_keras_serializable("bert")
class FoldChoices(keras.layers.Layer):
    """Folds the choices into the batch dimension."""

    def call(self, x):
        """[B, C, S] -> [B * C, S]."""
        return ops.reshape(x, (-1, ops.shape(x)[-1]))


@keras.saving.register_keras_serializable("bert")
class UnfoldChoices(keras.layers.Layer):
    """Unfolds the choices from the batch dimension."""

    def call(self, scores, x):
        """[B * C, 1] and the unfolded input, [B, C, S] -> [B, C]."""
        return ops.reshape(scores, ops.shape(x)[:2])


def _pooled_output(encoder: keras.Model, inputs: dict) -> keras.KerasTensor:
    """Pooled output; the last layer is computed at `[CLS]` only.

    Args:
        encoder: from `build_encoder`.
        inputs: as the encoder's.

    Returns:
        float [B, H]; if the encoder is packed, [B, K, H].
    """
    if features.NEXT_SENTENCE_POSITIONS in inputs:
        first = inputs[features.NEXT_SENTENCE_POSITIONS]
    else:
        first = ops.zeros_like(inputs[features.INPUT_IDS][:, :1])  # [CLS]
    return encoder(inputs, positions=first)["pooled_output"]


def _scores(
    x, config: BertConfig, seed: int, classes: int, name: str, bias: bool = True
) -> keras.KerasTensor:
    """Dropout and an output head: float [..., H] -> float32 [..., C]."""
    dropout = layers.Factory(config, seed, name).dropout(
        POOLED_DROPOUT, "dropout"
    )
    return heads.OutputHead(config, seed, classes, name, bias)(dropout(x))


def _freeze_pooler(encoder: keras.Model) -> None:
    """Freezes the unused pooler, as the original does.

    Otherwise weight decay would shrink it. It is marked, so that a model that
    reads it can tell this from a pooler that the user has frozen.
    """
    pooler = encoder.get_layer("pooler")
    pooler.is_unread = pooler.trainable or getattr(pooler, "is_unread", False)
    pooler.trainable = False


BUILDERS = {  # head -> config, number of outputs -> model
    CLASSIFIER: build_classifier,
    SPANS: lambda config, _: build_span_model(config),
    TOKENS: build_token_classifier,
    CHOICES: lambda config, _: build_choice_model(config),
}
