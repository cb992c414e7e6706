"""Table of output heads: layer, variables, input and outputs of each.

    encoder -> pooled_output or sequence_output -> head -> logits

This module does not import TensorFlow.
"""

from collections.abc import Collection
from typing import NamedTuple

MASKED_LM, NEXT_SENTENCE = "predictions", "seq_relationship"
COSENT, COSINE, RANKING = "cosent", "cosine", "ranking"  # of embeddings
CLASSIFIER, SPANS, TOKENS, CHOICES = "classifier", "squad", "ner", "swag"


class Head(NamedTuple):
    """Output head of an encoder.

    Attributes:
        title: str. Name in messages.
        scope: str. Prefix of its variables in a checkpoint.
        is_pooled: bool. Whether it reads `pooled_output`, one vector per
            sequence, instead of `sequence_output`.
        model: str. Name of the Keras model of `networks.build`.
        architecture: str or None. Class of transformers that has this head.
            None: no class has it, and the encoder's class is named.
        their_layer: str. Name of the layer in transformers, or in a folder
            for it.
        pipeline_tag: str or None. Name of the task at Hugging Face, for model
            cards. None: it has no name.
        outputs: tuple of str. Names of the model's outputs; if there are
            several, each is a column of the logits. Default: ("logits",).
        has_dropout: bool. Whether its input has dropout. Default: True.
        has_bias: bool. Whether it adds a bias. Default: True.
        has_choices: bool. Whether an example has several sequences, with a
            logit for each. Default: False.
    """

    title: str
    scope: str
    is_pooled: bool
    model: str
    architecture: str | None
    their_layer: str
    pipeline_tag: str | None
    outputs: tuple[str, ...] = ("logits",)
    has_dropout: bool = True
    has_bias: bool = True
    has_choices: bool = False


HEADS = {  # name of the layer -> head
    MASKED_LM: Head(
        "masked LM",
        "cls/predictions/",
        False,
        "pretraining",
        "BertForMaskedLM",
        "cls.predictions",
        "fill-mask",
        outputs=("masked_lm_logits",),
        has_dropout=False,
    ),
    NEXT_SENTENCE: Head(
        "next sentence",
        "cls/seq_relationship/",
        True,
        "next_sentence",
        "BertForNextSentencePrediction",
        "cls.seq_relationship",
        None,
        outputs=("next_sentence_logits",),
        has_dropout=False,
    ),
    CLASSIFIER: Head(
        "classifier",
        "",
        True,
        "sentence",
        "BertForSequenceClassification",
        "classifier",
        "text-classification",
    ),
    SPANS: Head(
        "span",
        "cls/squad/",
        False,
        "span",
        "BertForQuestionAnswering",
        "qa_outputs",
        "question-answering",
        outputs=("start_logits", "end_logits"),
        has_dropout=False,
    ),
    TOKENS: Head(
        "token classifier",
        "cls/ner/",
        False,
        "token",
        "BertForTokenClassification",
        "classifier",
        "token-classification",
    ),
    CHOICES: Head(
        "multiple choice",
        "cls/swag/",
        True,
        "choice",
        "BertForMultipleChoice",
        "classifier",
        "multiple-choice",
        has_bias=False,
        has_choices=True,
    ),
}
PRETRAINING = (MASKED_LM, NEXT_SENTENCE)


def heads_of(names: Collection[str]) -> list[str]:
    """Returns the keys in `HEADS` of all heads of a checkpoint.

    Args:
        names: collection of str. Original names of the variables.
    """
    # The weights of the masked LM are the word embeddings.
    part = {MASKED_LM: "output_bias"}
    return [
        name
        for name, head in HEADS.items()
        if head.scope + part.get(name, "output_weights") in names
    ]


def head_of(names: Collection[str]) -> str | None:
    """Returns the key in `HEADS` of a fine-tuned head, or None.

    Args:
        names: collection of str. Original names of the variables.
    """
    found = (name for name in heads_of(names) if name not in PRETRAINING)
    return next(found, None)
