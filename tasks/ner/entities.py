"""Labels of words that mark entities: read in any scheme, written in BIO.

    words   Angela  Merkel  visits  New    York   City
    IOB1    I-PER   I-PER   O       I-LOC  I-LOC  I-LOC   B- only to part two
    BIO     B-PER   I-PER   O       B-LOC  I-LOC  I-LOC
    IOBES   B-PER   E-PER   O       B-LOC  I-LOC  E-LOC   S- is one word
    BILOU   B-PER   L-PER   O       B-LOC  I-LOC  L-LOC   U- is one word

A sequence that no scheme allows is read as `conlleval` reads it, the scorer
of the CoNLL-2003 shared task: a new type begins an entity, and so does any
label behind `O`.
"""

import re
from collections.abc import Iterable

ENTITIES, ANY = "entities", "any"  # kinds of labels
OUTSIDE = "O"
_ENTITY = re.compile(r"[BIESLU]-.+")
_BEGINS, _ENDS = "BSU", "ESLU"

Entity = tuple[int, int, str]  # its first word, the first behind it, its type


def is_entity_label(label: str) -> bool:
    """Whether a label is `O` or one of the schemes above."""
    return label == OUTSIDE or bool(_ENTITY.fullmatch(label))


def kind_of(labels: Iterable[str]) -> str:
    """The kind of these labels: `ENTITIES` if all are entity labels."""
    return ENTITIES if all(map(is_entity_label, labels)) else ANY


def find(labels: Iterable[str]) -> list[Entity]:
    """Entities of a sentence, in their order.

    Args:
        labels: of its words; each is an entity label.
    """
    found = []
    start, kind, closed = 0, None, True  # `closed`: the next one is apart
    for place, label in enumerate(labels):
        prefix, _, name = label.partition("-")
        outside = label == OUTSIDE
        if kind and (outside or closed or prefix in _BEGINS or name != kind):
            found.append((start, place, kind))
            kind = None
        if outside:
            continue
        if not kind:
            start, kind = place, name
        closed = prefix in _ENDS
    if kind:
        found.append((start, place + 1, kind))
    return found


def to_bio(labels: list[str]) -> list[str]:
    """The same entities in BIO.

    Args:
        labels: of a sentence, in any scheme.
    """
    converted = [OUTSIDE] * len(labels)
    for start, limit, kind in find(labels):
        converted[start] = f"B-{kind}"
        converted[start + 1 : limit] = [f"I-{kind}"] * (limit - start - 1)
    return converted


def bio_labels(types: Iterable[str]) -> list[str]:
    """All labels that BIO needs for these types of entities.

    Args:
        types: their names; repeated ones count once.
    """
    return [OUTSIDE] + [f"{p}-{x}" for x in sorted(set(types)) for p in "BI"]
