"""Networks of pre-training and of tasks: encoder and heads."""

import keras
from keras import ops

from bert.common.errors import UserError
from bert.data import feature_names
from bert.modeling import heads, layers, task_losses
from bert.modeling.config import BertConfig
from bert.modeling.encoder import Encoder, build_encoder
from bert.modeling.task_heads import CLASSIFIER, HEADS, MASKED_LM, NEXT_SENTENCE

POOLED_DROPOUT = 0.1  # before the head; fixed in the original


@keras.saving.register_keras_serializable("bert")
class Classifier(keras.Model):
    """Functional model whose outputs are the logits of classes."""

    def compile(
        self,
        optimizer="rmsprop",
        loss=None,
        loss_weights=None,
        metrics=None,
        **kwargs,
    ):
        """Same as in `keras.Model`, with a loss on logits.

        Args:
            optimizer: optimizer, or its name. Default: "rmsprop".
            loss: loss on logits, or None. Default: None, cross-entropy with
                accuracy as the metric, or squared error for regression.
            loss_weights: see `keras.Model`.
            metrics: see `keras.Model`.
            **kwargs: see `keras.Model`.

        Raises:
            UserError: the loss takes probabilities.
        """
        if loss is None:
            loss, usual_metrics = default_loss(self.output["logits"].shape[-1])
            metrics = usual_metrics if metrics is None else metrics
        check_loss(loss)
        super().compile(optimizer, loss, loss_weights, metrics, **kwargs)

    def compile_from_config(self, config):
        """Compiles a loaded model, and builds its optimizer."""
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)


def default_loss(
    num_labels: int, is_multi_label: bool = False
) -> tuple[keras.losses.Loss, list | None]:
    """Returns the default loss and metrics of `compile`.

    Args:
        num_labels: int. C of logits [B, C]; 1 for regression.
        is_multi_label: bool. Whether an example may have several labels.
            Default: False.
    """
    loss = task_losses.of_labels(num_labels, is_multi_label)
    if is_multi_label:
        accuracy = keras.metrics.BinaryAccuracy("accuracy", threshold=0.0)
        return loss, [accuracy]
    return loss, ["accuracy"] if num_labels > 1 else None


def check_loss(loss) -> None:
    """Rejects a loss on probabilities.

    Args:
        loss: Keras loss, its name or its function; or a structure of them.

    Raises:
        UserError: a cross-entropy without from_logits=True.
    """
    # Keras' functions and names take probabilities by default.
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


def check_metrics(metrics) -> None:
    """Rejects metrics of probabilities.

    Args:
        metrics: Keras metric, its name or its function; or a structure of
            them.

    Raises:
        UserError: a metric without from_logits=True.
    """
    for given in keras.tree.flatten(metrics):
        metric = keras.metrics.get(given)
        config = metric.get_config() if isinstance(metric, keras.Metric) else {}
        if config.get("from_logits") is False:
            raise UserError(
                f"the metric {getattr(given, 'name', given)!r} takes "
                "probabilities",
                expected="a metric of logits",
                fix="pass one with from_logits=True",
            )


def build_pretraining_model(
    config: BertConfig,
    seed: int = 12345,
    packed: bool = False,
    encoder: keras.Model | None = None,
) -> keras.Model:
    """Builds the encoder with masked LM and next-sentence heads.

    Args:
        config: BertConfig. Sizes of the network.
        seed: int. Seed of the initial weights. Default: 12345.
        packed: bool. Whether a row holds several sequences. Default: False.
        encoder: keras.Model or None. Encoder with this config. Default: None,
            a new encoder.

    Returns:
        Functional model that takes the encoder's inputs and
        `masked_lm_positions`, int32 [B, P], and returns a dict:
            masked_lm_logits: float32 [B, P, V].
            next_sentence_logits: float32 [B, 2]; [B, K, 2] if `packed`.
                0 = next sentence, 1 = random.
    """
    encoder = encoder or build_encoder(config, seed, packed)
    positions = keras.Input(
        (None,), dtype="int32", name=feature_names.MASKED_LM_POSITIONS
    )

    first = ops.zeros_like(positions[:, :1])  # [CLS]
    if packed:
        first = encoder.input[feature_names.NEXT_SENTENCE_POSITIONS]

    # The pooler reads `[CLS]`, the masked LM head the masked positions.
    read = encoder(
        encoder.input, positions=ops.concatenate([first, positions], axis=1)
    )

    masked_lm = heads.MaskedLMHead(config, seed)
    next_sentence = heads.OutputHead(config, seed, 2, NEXT_SENTENCE)

    return keras.Model(
        {**encoder.input, feature_names.MASKED_LM_POSITIONS: positions},
        {
            "masked_lm_logits": masked_lm(
                read["sequence_output"], read["word_embeddings"]
            ),
            "next_sentence_logits": next_sentence(read["pooled_output"]),
        },
        name="pretraining",
    )


def build(
    config: BertConfig,
    head: str,
    num_outputs: int,
    seed: int = 12345,
    packed: bool = False,
    encoder: keras.Model | None = None,
) -> keras.Model:
    """Builds the encoder with a head.

    Args:
        config: BertConfig. Sizes of the network.
        head: str. Key of `task_heads.HEADS`. The masked LM comes with the
            next-sentence head, see `build_pretraining_model`.
        num_outputs: int. C, the number of logits of the head. The masked LM
            ignores it.
        seed: int. Seed of the initial weights. Default: 12345.
        packed: bool. Whether a row holds several sequences. Default: False.
        encoder: keras.Model or None. Encoder with this config. Default: None,
            a new encoder.

    Returns:
        Functional model that takes the encoder's inputs, and returns a dict
        with the outputs of the head: float32 [B, C] if it reads
        `pooled_output` ([B, K, C] if `packed`), else float32 [B, S, C]. With
        several names of outputs each has a column of them, [B, S]. A head
        with choices takes int32 [B, C, S] and returns float32 [B, C].
    """
    if head == MASKED_LM:
        return build_pretraining_model(config, seed, packed, encoder)

    parts = HEADS[head]
    encoder = encoder or build_encoder(config, seed, packed)
    inputs = rows = encoder.input
    if parts.has_choices:
        inputs, rows = _folded_inputs(encoder)

    if parts.is_pooled:
        x = _pooled_output(encoder, rows)
    else:
        _freeze_pooler(encoder)
        x = encoder(rows)["sequence_output"]
    if parts.has_dropout:
        make = layers.LayerFactory(config, seed, head)
        x = make.dropout(POOLED_DROPOUT, "dropout")(x)
    logits = heads.OutputHead(config, seed, num_outputs, head, parts.has_bias)(
        x
    )

    if parts.has_choices:
        # Scores stay float32, so that close ones are not rounded to ties.
        unfold = heads.UnfoldChoices(name="unfold", dtype="float32")
        logits = unfold(logits, inputs[feature_names.INPUT_IDS])
    outputs = {parts.outputs[0]: logits}
    if len(parts.outputs) > 1:
        outputs = {name: logits[..., i] for i, name in enumerate(parts.outputs)}

    model_class = Classifier if head == CLASSIFIER else keras.Model
    return model_class(inputs, outputs, name=parts.model)


def packed_outputs(
    encoder: Encoder,
    head: keras.layers.Layer | None,
    inputs: dict,
    layer: int | tuple[int, ...] = -1,
):
    """Computes the outputs of packed rows, as engines do.

    Args:
        encoder: Encoder. Encoder from `build_encoder`, packed or not.
        head: keras.layers.Layer or None. Its head, named as in `HEADS`. None:
            the output is a layer of the encoder.
        inputs: dict. Inputs of a packed encoder. A head on `[CLS]` or on a
            mask reads `next_sentence_positions`.
        layer: int or tuple of int. Layer of the encoder to return without a
            head, from -1 for the last; or several. Default: -1.

    Returns:
        float [R, K, C] for a head on `[CLS]` or on a mask, else float [R, W,
        ...]; [R, W, L, H] for L layers.
    """
    if head is None:
        outputs = encoder.call(inputs)["encoder_outputs"]
        if isinstance(layer, int):
            return outputs[layer]
        return ops.stack([outputs[i] for i in layer], 2)
    read = inputs[feature_names.NEXT_SENTENCE_POSITIONS]
    if head.name == MASKED_LM:
        both = ops.concatenate([read, read], 1)  # the pooler's, and the masks
        outputs = encoder.call(inputs, positions=both)
        return head(outputs["sequence_output"], outputs["word_embeddings"])
    if not HEADS[head.name].is_pooled:
        return head(encoder.call(inputs)["sequence_output"])
    return head(encoder.call(inputs, positions=read)["pooled_output"])


def build_similarity_model(
    config: BertConfig, pooling: str, seed: int = 12345
) -> keras.Model:
    """Builds the encoder with an embedding for each text.

    Args:
        config: BertConfig. Sizes of the network.
        pooling: str. "cls" for the first token, "mean" or "max" over all
            tokens.
        seed: int. Seed of the initial weights. Default: 12345.

    Returns:
        Functional model that takes the encoder's inputs as int32 [B, T, S],
        T texts, and returns a dict: vectors, float32 [B, T, H].
    """
    encoder = build_encoder(config, seed)
    _freeze_pooler(encoder)
    inputs, rows = _folded_inputs(encoder)
    pool = heads.PoolTexts(pooling, name="pool", dtype="float32")
    vectors = pool(
        encoder(rows)["sequence_output"], inputs[feature_names.INPUT_MASK]
    )
    return keras.Model(inputs, {"vectors": vectors}, name="similarity")


def _folded_inputs(encoder: keras.Model) -> tuple[dict, dict]:
    """Inputs of several sequences per example, and the encoder's inputs.

    Args:
        encoder: keras.Model. Encoder from `build_encoder`.

    Returns:
        Name -> int32 [B, C, S], and name -> int32 [B * C, S].
    """
    inputs = {
        name: keras.Input((None, None), dtype="int32", name=name)
        for name in encoder.input
    }
    fold = heads.FoldChoices(name="fold")
    return inputs, {name: fold(x) for name, x in inputs.items()}


def _pooled_output(encoder: keras.Model, inputs: dict) -> keras.KerasTensor:
    """Pooled output; the last layer is only computed at `[CLS]`.

    Args:
        encoder: keras.Model. Encoder from `build_encoder`.
        inputs: dict. Inputs of the encoder.

    Returns:
        float [B, H]; [B, K, H] if the encoder is packed.
    """
    if feature_names.NEXT_SENTENCE_POSITIONS in inputs:
        first = inputs[feature_names.NEXT_SENTENCE_POSITIONS]
    else:
        first = ops.zeros_like(inputs[feature_names.INPUT_IDS][:, :1])  # [CLS]
    return encoder(inputs, positions=first)["pooled_output"]


def _freeze_pooler(encoder: keras.Model) -> None:
    """Freezes the unused pooler, as the original does.

    Otherwise weight decay would shrink it. `is_unread` distinguishes it from a
    pooler that the user has frozen.
    """
    pooler = encoder.get_layer("pooler")
    pooler.is_unread = pooler.trainable or getattr(pooler, "is_unread", False)
    pooler.trainable = False
