"""Models on an encoder, with the heads of its checkpoint where it has them."""

import keras
from keras import ops

from bert.common.progress import say
from bert.data import features
from bert.modeling import checkpoints, heads, models, task_models
from bert.models.loading import Encoder, config_of


def classifier(
    encoder: Encoder, num_labels: int, seed: int = 12345
) -> keras.Model:
    """Adds a classifier on `[CLS]`; the encoder is shared, not copied.

        model = bert.classifier(encoder, num_labels=2)
        model(inputs)["logits"].shape  # [B, 2]

    Args:
        encoder: the encoder.
        num_labels: C; 1 for regression.
        seed: of the initial weights of the head.

    Returns:
        a functional model that takes the encoder's inputs and returns a
        dict: logits, float32 [B, C].
    """
    return _with_heads(new_classifier(encoder, num_labels, seed), encoder)


def new_classifier(
    encoder: Encoder, num_labels: int, seed: int
) -> task_models.Classifier:
    """As `classifier`, with initial weights of the head."""
    _thaw_pooler(encoder)
    return task_models.build_classifier(
        config_of(encoder), num_labels, seed, encoder=encoder
    )


def token_classifier(
    encoder: Encoder, num_labels: int, seed: int = 12345
) -> keras.Model:
    """Adds a classifier on every token.

        model = bert.token_classifier(encoder, num_labels=5)
        model(inputs)["logits"].shape  # [B, S, 5]

    The pooler of the encoder, which is not read, is frozen.

    Args:
        encoder: the encoder.
        num_labels: C.
        seed: of the initial weights of the head.

    Returns:
        a functional model that takes the encoder's inputs and returns a
        dict: logits, float32 [B, S, C].
    """
    return _with_heads(
        task_models.build_token_classifier(
            config_of(encoder), num_labels, seed, encoder=encoder
        ),
        encoder,
    )


def span_model(encoder: Encoder, seed: int = 12345) -> keras.Model:
    """Adds start and end scores, for question answering.

        model = bert.span_model(encoder)
        model(inputs)["start_logits"].shape  # [B, S]

    The pooler of the encoder, which is not read, is frozen.

    Args:
        encoder: the encoder.
        seed: of the initial weights of the head.

    Returns:
        a functional model that takes the encoder's inputs and returns a
        dict: start_logits and end_logits, float32 [B, S] each.
    """
    return _with_heads(
        task_models.build_span_model(config_of(encoder), seed, encoder=encoder),
        encoder,
    )


def next_sentence(encoder: Encoder, seed: int = 12345) -> keras.Model:
    """Adds the next-sentence head.

        model = bert.next_sentence(encoder)
        model(inputs)["next_sentence_logits"].shape  # [B, 2]

    Args:
        encoder: the encoder.
        seed: of the initial weights of the head.

    Returns:
        a functional model that takes the encoder's inputs and returns a
        dict: next_sentence_logits, float32 [B, 2]; 0 = follows, 1 = random.
    """
    _thaw_pooler(encoder)
    config = config_of(encoder)
    first = ops.zeros_like(encoder.input[features.INPUT_IDS][:, :1])  # [CLS]
    pooled = encoder(encoder.input, positions=first)["pooled_output"]

    head = heads.OutputHead(config, seed, 2, "seq_relationship")
    outputs = {"next_sentence_logits": head(pooled)}

    model = keras.Model(encoder.input, outputs, name="next_sentence")
    return _with_heads(model, encoder, may_be_new=False)


def masked_lm(
    encoder: Encoder, next_sentence: bool = False, seed: int = 12345
) -> keras.Model:
    """Adds the masked-LM head, and on request the next-sentence head.

        model = bert.masked_lm(encoder)
        positions = {"masked_lm_positions": np.array([[1]])}
        model({**inputs, **positions})["masked_lm_logits"].shape  # [B, 1, V]

    Args:
        encoder: the encoder.
        next_sentence: add both heads of pre-training.
        seed: of the initial weights of the heads.

    Returns:
        a functional model that takes the encoder's inputs and
        masked_lm_positions, int32 [B, P], and returns a dict:
        masked_lm_logits, float32 [B, P, V]; and next_sentence_logits,
        float32 [B, 2], on request.
    """
    if next_sentence:
        _thaw_pooler(encoder)
    model = models.build_pretraining_model(
        config_of(encoder), seed, encoder=encoder
    )

    # A model of one output has only the layers that lead to it.
    if not next_sentence:
        outputs = {"masked_lm_logits": model.output["masked_lm_logits"]}
        model = keras.Model(model.input, outputs, name=model.name)

    return _with_heads(model, encoder, may_be_new=False)


def _thaw_pooler(encoder: Encoder) -> None:
    """Undoes what a model without pooler on the same encoder has frozen."""
    pooler = encoder.get_layer("pooler")
    if getattr(pooler, "is_unread", False):
        pooler.trainable, pooler.is_unread = encoder.trainable, False


def _with_heads(
    model: keras.Model, encoder: Encoder, may_be_new: bool = True
) -> keras.Model:
    """Assigns the weights of the checkpoint's heads; reports new ones.

    Where a head may be new, only if the checkpoint has one of another shape.
    """
    checkpoint = getattr(encoder, "checkpoint", None)
    if checkpoint is None:
        return model

    named = {
        name: variable
        for name, variable in checkpoints.model_variables(model).items()
        if not name.startswith(checkpoints.ENCODER)
    }

    values = checkpoints.without_other_heads(checkpoint.values, named)
    new = checkpoints.assign(named, values, checkpoint.path, required=())
    model.task = None if new else checkpoint.task  # labels, for `bert.save`

    # New heads are usual for a new task; one of another shape is not.
    if may_be_new:
        new = [name for name in new if name in checkpoint.values]
    if new:
        say(
            f"initial weights, none of this shape in {checkpoint.path}: "
            f"{', '.join(new)}"
        )
    return model
