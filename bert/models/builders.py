"""Builders: models of an encoder and a head for one task.

A head has the weights of the checkpoint, if the checkpoint has such a head.
"""

import keras
import numpy as np

from bert.common.errors import UserError
from bert.common.progress import log
from bert.data.labels import Labels
from bert.modeling import checkpoints, networks
from bert.modeling.task_heads import (
    CLASSIFIER,
    HEADS,
    MASKED_LM,
    NEXT_SENTENCE,
    PRETRAINING,
    SPANS,
    TOKENS,
)
from bert.models.loading import Encoder, config_of


def classifier(
    encoder: Encoder, num_labels: int, seed: int = 12345
) -> keras.Model:
    """Adds a head that classifies sequences, on the output of `[CLS]`.

        model = bert.classifier(encoder, num_labels=2)
        model(inputs)["logits"].shape  # [B, 2]

    The encoder is shared, not copied. For strings instead of token ids use
    `bert.TextClassifier`.

    Args:
        encoder: Encoder. An encoder of `load_encoder` or `new_encoder`.
        num_labels: int. Number of classes C; 1 for regression.
        seed: int. Seed of the initial weights of the head. Default: 12345.

    Returns:
        a functional `keras.Model`. It takes the encoder's inputs and returns
        a dict with logits, float32 [B, C].
    """
    return trained_head(encoder, CLASSIFIER, num_labels, seed)


def token_classifier(
    encoder: Encoder, num_labels: int, seed: int = 12345
) -> keras.Model:
    """Adds a head that classifies every token.

        model = bert.token_classifier(encoder, num_labels=5)
        model(inputs)["logits"].shape  # [B, S, 5]

    The encoder is shared, not copied, and its unused pooler is frozen. For
    words instead of token ids use `bert.TokenClassifier`.

    Args:
        encoder: Encoder. An encoder of `load_encoder` or `new_encoder`.
        num_labels: int. Number of classes C.
        seed: int. Seed of the initial weights of the head. Default: 12345.

    Returns:
        a functional `keras.Model`. It takes the encoder's inputs and returns
        a dict with logits, float32 [B, S, C].
    """
    return trained_head(encoder, TOKENS, num_labels, seed)


def span_model(encoder: Encoder, seed: int = 12345) -> keras.Model:
    """Adds a head that scores starts and ends of answers.

        model = bert.span_model(encoder)
        model(inputs)["start_logits"].shape  # [B, S]

    The encoder is shared, not copied, and its unused pooler is frozen. For
    strings instead of token ids use `bert.QuestionAnswerer`.

    Args:
        encoder: Encoder. An encoder of `load_encoder` or `new_encoder`.
        seed: int. Seed of the initial weights of the head. Default: 12345.

    Returns:
        a functional `keras.Model`. It takes the encoder's inputs and returns
        a dict with start_logits and end_logits, float32 [B, S] each.
    """
    return trained_head(encoder, SPANS, 2, seed)


def next_sentence(encoder: Encoder, seed: int = 12345) -> keras.Model:
    """Adds the next-sentence head of pre-training.

        model = bert.next_sentence(encoder)
        model(inputs)["next_sentence_logits"].shape  # [B, 2]

    The encoder is shared, not copied.

    Args:
        encoder: Encoder. An encoder of `load_encoder` or `new_encoder`.
        seed: int. Seed of the initial weights of the head. Default: 12345.

    Returns:
        a functional `keras.Model`. It takes the encoder's inputs and returns
        a dict with next_sentence_logits, float32 [B, 2]. Class 0: the second
        text follows the first; class 1: it is a random text.
    """
    return trained_head(encoder, NEXT_SENTENCE, 2, seed)


def masked_lm(
    encoder: Encoder, next_sentence: bool = False, seed: int = 12345
) -> keras.Model:
    """Adds the masked-LM head, and optionally the next-sentence head.

        model = bert.masked_lm(encoder)
        positions = {"masked_lm_positions": np.array([[1]])}
        model({**inputs, **positions})["masked_lm_logits"].shape  # [B, 1, V]

    The encoder is shared, not copied. To predict masked words of a string use
    `bert.fill_mask`.

    Args:
        encoder: Encoder. An encoder of `load_encoder` or `new_encoder`.
        next_sentence: bool. Whether to add the next-sentence head, too.
            Default: False.
        seed: int. Seed of the initial weights of the heads. Default: 12345.

    Returns:
        a functional `keras.Model`. It takes the encoder's inputs and
        masked_lm_positions, int32 [B, P]. It returns a dict with
        masked_lm_logits, float32 [B, P, V], and, with `next_sentence`,
        next_sentence_logits, float32 [B, 2].
    """
    if next_sentence:
        _thaw_pooler(encoder)
    model = new_head(encoder, MASKED_LM, 0, seed)

    # A functional model has only the layers that its outputs need.
    if not next_sentence:
        outputs = {
            name: model.output[name] for name in HEADS[MASKED_LM].outputs
        }
        model = keras.Model(model.input, outputs, name=model.name)
    return _assigned(model, encoder)


def trained_head(
    encoder: Encoder, head: str, num_outputs: int, seed: int
) -> keras.Model:
    """Adds a head with the weights of the encoder's checkpoint.

    Random weights are logged: of a head of pre-training always, of another
    head only if the checkpoint has it with another shape.

    Args:
        encoder: Encoder. The encoder, which is shared.
        head: str. Key of `task_heads.HEADS`.
        num_outputs: int. Number of logits.
        seed: int. Seed of the initial weights of the head.
    """
    model = new_head(encoder, head, num_outputs, seed)
    return _assigned(model, encoder, may_be_new=head not in PRETRAINING)


def with_labels(
    network: keras.Model,
    head: str,
    labels: Labels,
    trained: Labels | None,
    seed: int,
) -> keras.Model:
    """Adds the head of a classifier, unless the network has it.

    The weights of a fine-tuned head are kept if its labels are the same.

    Args:
        network: keras.Model. An encoder, or a model of `classifier` or
            `token_classifier`.
        head: str. Key of `task_heads.HEADS`.
        labels: Labels. The labels of the classifier.
        trained: Labels or None. The labels of the fine-tuned head.
        seed: int. Seed of the initial weights of the head.

    Raises:
        UserError: The head of the network has another number of outputs.
    """
    if trained and trained != labels:
        log(
            "a new head with random weights: the head of "
            f"{network.checkpoint.path} is for {trained}, "
            f"not for {labels}"
        )
        return new_head(network, head, labels.size, seed)
    if head in {layer.name for layer in network.layers}:
        size = network.get_layer(head).output_weights.shape[0]
        if size != labels.size:
            raise UserError(
                f"a head of {size} outputs",
                expected=f"{labels.size}, for {labels}",
                fix="pass its encoder",
            )
        return network
    return trained_head(network, head, labels.size, seed)


def is_new(loaded: keras.Model, network: keras.Model, head: str) -> bool:
    """Whether a head with random weights was added to a loaded encoder.

    Args:
        loaded: keras.Model. The model before.
        network: keras.Model. Result of `with_labels`.
        head: str. Key of `task_heads.HEADS`.
    """
    checkpoint = getattr(loaded, "checkpoint", None)
    if network is loaded or checkpoint is None:
        return False
    found = checkpoint.values.get(f"{HEADS[head].scope}output_weights")
    weights = network.get_layer(head).output_weights.numpy()
    return found is None or not np.array_equal(found, weights)


def new_head(
    encoder: Encoder, head: str, num_outputs: int, seed: int
) -> keras.Model:
    """Adds a head with random weights; see `trained_head` for the arguments."""
    if HEADS[head].is_pooled:
        _thaw_pooler(encoder)
    return networks.build(
        config_of(encoder), head, num_outputs, seed, encoder=encoder
    )


def _thaw_pooler(encoder: Encoder) -> None:
    """Makes a pooler trainable that another builder has frozen."""
    pooler = encoder.get_layer("pooler")
    if getattr(pooler, "is_unread", False):
        pooler.trainable, pooler.is_unread = encoder.trainable, False


def _assigned(
    model: keras.Model, encoder: Encoder, may_be_new: bool = False
) -> keras.Model:
    """Assigns the weights of the checkpoint's heads; see `trained_head`."""
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
    model.task = (
        None if new else checkpoint.task_json
    )  # labels, for `bert.save`

    # A new task needs a new head, but a head of another shape is unexpected.
    if may_be_new:
        new = [name for name in new if name in checkpoint.values]
    if new:
        log(
            f"random weights, none of this shape in {checkpoint.path}: "
            f"{', '.join(new)}"
        )
    return model
