"""Task heads: variables, input and outputs of each.

    encoder -> pooled_output or sequence_output -> head -> logits

This module does not import TensorFlow.
"""

from collections.abc import Collection
from typing import NamedTuple

CLASSIFIER, SPANS, TOKENS, CHOICES = "classifier", "squad", "ner", "swag"


class Head(NamedTuple):
    """Linear layer on the encoder.

    Attributes:
        scope: str. Prefix of its variables in a checkpoint.
        is_pooled: bool. Whether it reads `pooled_output`, one vector per
            sequence, instead of `sequence_output`.
        has_bias: bool. Whether it adds a bias. Default: True.
    """

    scope: str
    is_pooled: bool
    has_bias: bool = True


HEADS = {
    CLASSIFIER: Head("", is_pooled=True),
    SPANS: Head("cls/squad/", is_pooled=False),
    TOKENS: Head("cls/ner/", is_pooled=False),
    CHOICES: Head("cls/swag/", is_pooled=True, has_bias=False),
}


def head_of(names: Collection[str]) -> str | None:
    """Returns the key in `HEADS` of a checkpoint's head, or None.

    Args:
        names: collection of str. Original names of the variables.
    """
    found = (
        name
        for name, head in HEADS.items()
        if f"{head.scope}output_weights" in names
    )
    return next(found, None)
