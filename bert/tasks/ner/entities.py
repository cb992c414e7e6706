"""Entity labels of words: reads any scheme, writes BIO.

    words   Angela  Merkel  visits  New    York   City
    IOB1    I-PER   I-PER   O       I-LOC  I-LOC  I-LOC   B- after another
    BIO     B-PER   I-PER   O       B-LOC  I-LOC  I-LOC
    IOBES   B-PER   E-PER   O       B-LOC  I-LOC  E-LOC   S- marks a single word
    BILOU   B-PER   L-PER   O       B-LOC  I-LOC  L-LOC   U- marks a single word

Labels without a type, such as B, I and O, mark entities of one type, "".

A sequence that is invalid in all schemes is read as in `conlleval`, the scorer
of CoNLL-2003. An entity begins at a new type, and at any label after `O`.
"""

import re
from collections.abc import Iterable

ENTITIES, ANY = "entities", "any"  # kinds of labels
OUTSIDE = "O"
_ENTITY = re.compile(r"[BIESLU](-.+)?")
_BEGINS, _ENDS = "BSU", "ESLU"

Entity = tuple[int, int, str]  # first word, first word after it, type


def is_entity_label(label: str) -> bool:
    """Whether a label is `O` or a label of one of the schemes above."""
    return label == OUTSIDE or bool(_ENTITY.fullmatch(label))


def kind_of(labels: Iterable[str]) -> str:
    """The kind of labels: `ENTITIES` if all are entity labels, else `ANY`.

    Single letters may be other labels. Without types, `O`, and `B` or `I`, must
    be among the labels.
    """
    distinct = set(labels)
    if not all(map(is_entity_label, distinct)):
        return ANY
    untyped = {x for x in distinct if len(x) == 1}
    if (
        untyped <= {OUTSIDE}
        or untyped == distinct
        and (OUTSIDE in untyped and untyped & {"B", "I"})
    ):
        return ENTITIES
    return ANY


def in_lower_case(labels: Iterable[str]) -> str | None:
    """Finds a label with a lower-case prefix, such as b-PER."""
    return next((x for x in labels if x.startswith(("b-", "i-"))), None)


def find(labels: Iterable[str]) -> list[Entity]:
    """Finds the entities of a sentence, in order.

    Args:
        labels: the entity label of each word.

    Returns:
        for each entity: first word, first word after it, type.
    """
    found = []
    start, kind, closed = 0, None, True  # `closed`: the entity has ended
    for index, label in enumerate(labels):
        prefix, _, name = label.partition("-")
        outside = label == OUTSIDE

        # An entity ends before the first word that cannot continue it.
        if kind is not None and (
            outside or closed or prefix in _BEGINS or name != kind
        ):
            found.append((start, index, kind))
            kind = None
        if outside:
            continue
        if kind is None:
            start, kind = index, name
        closed = prefix in _ENDS
    if kind is not None:
        found.append((start, index + 1, kind))
    return found


def to_bio(labels: list[str]) -> list[str]:
    """Converts the labels of a sentence from any scheme to BIO."""
    converted = [OUTSIDE] * len(labels)
    for start, limit, kind in find(labels):
        converted[start:limit] = [_label("I", kind)] * (limit - start)
        converted[start] = _label("B", kind)
    return converted


def bio_labels(types: Iterable[str]) -> list[str]:
    """Lists the BIO labels of entity types.

    Args:
        types: list of str. Names of the types; duplicates are ignored.
    """
    return [OUTSIDE] + [_label(p, x) for x in sorted(set(types)) for p in "BI"]


def _label(prefix: str, kind: str) -> str:
    """The label of a word in an entity of a type, which may be ""."""
    return f"{prefix}-{kind}" if kind else prefix
