"""Splits a table into rows for training and rows for evaluation.

Copies of a text, and rows of one group, stay in the same split. Otherwise the
model would be evaluated on texts that it was trained on.
"""

import dataclasses
from itertools import compress

import numpy as np

from bert.common.errors import UserError
from bert.data.label_kinds import CLASSES, Labels
from bert.tasks import folds
from bert.tasks.classification import examples
from bert.tasks.classification.examples import DEV, Part, TextExample
from bert.tasks.classification.settings import Settings


def first_copies(examples: list[TextExample]) -> list[int]:
    """Maps each example to the index of the first one with its texts."""
    numbers: dict[tuple[str, str], int] = {}
    return [
        numbers.setdefault((example.text, example.text_b), number)
        for number, example in enumerate(examples)
    ]


def together(examples: list[TextExample]) -> list[int]:
    """Maps each example to the index of the first one linked to it.

    Two examples are linked if they share their texts or a group. Links are
    transitive: a copy of a text in another group links both groups.
    """
    firsts: dict[str, int] = {}  # group -> its first example
    joined = [*range(len(examples))]

    def first_of(number: int) -> int:
        while joined[number] != number:
            number = joined[number]
        return number

    copies = first_copies(examples)
    for number, (example, copy) in enumerate(zip(examples, copies)):
        others = [copy]
        if example.group:
            others.append(firsts.setdefault(example.group, number))
        for other in others:
            first, second = sorted((first_of(number), first_of(other)))
            joined[second] = first
    return [*map(first_of, joined)]


def hold_out(settings: Settings, part: Part, labels: Labels) -> Part:
    """Keeps the rows of a table for training, or the held-out ones.

    Rows are held out at random, by --eval_share or as a fold. Linked rows stay
    together, see `together`.

    Args:
        settings: the settings of the script.
        part: the table; its `split` tells which rows are kept.
        labels: the labels of the task. The choice is stratified by one label.

    Raises:
        UserError: there are too few rows.
    """
    rows, gold = part.examples, None
    if labels.kind == CLASSES:
        gold = [row.label for row in rows]
    if settings.fold:
        groups = _numbered(rows, together(rows))
        is_held_out = folds.held_out(settings, part.path, groups, gold)
    else:
        names = [labels.names[x] for x in gold] if gold else [""] * len(rows)
        is_held_out = _drawn(settings, part, names)
    chosen = is_held_out == (part.split == DEV)
    return dataclasses.replace(part, examples=[*compress(rows, chosen)])


def _drawn(settings: Settings, part: Part, strata: list[str]) -> np.ndarray:
    """Draws --eval_share of the rows of a table.

    Args:
        settings: the settings of the script.
        part: the table with N rows.
        strata: N strings. Equal ones are drawn separately.

    Returns:
        bool [N], whether a row is held out.
    """
    firsts, share = together(part.examples), settings.eval_share
    by_stratum: dict[str, list[int]] = {}
    for number in sorted(set(firsts)):
        by_stratum.setdefault(strata[number], []).append(number)
    seed = settings.random_seed % 2**63  # it may be negative
    generator, chosen = np.random.default_rng(seed), set()
    for _, numbers in sorted(by_stratum.items()):
        drawn = generator.permutation(numbers)
        if len(numbers) > 1:  # a label that occurs once stays in training
            count = max(1, round(share * len(numbers)))
            chosen.update(drawn[:count].tolist())
    if not 0 < len(chosen) < len(set(firsts)):
        raise UserError(
            f"--eval_share={share} of {len(set(firsts)):,} different texts",
            path=part.path,
            expected="enough for training and evaluation",
        )
    return np.array([number in chosen for number in firsts])


def _numbered(rows: list[TextExample], firsts: list[int]) -> list[int]:
    """Numbers the groups in the order of their names, as scikit-learn does.

    Args:
        rows: the N examples.
        firsts: the result of `division.together`.

    Returns:
        N numbers, equal for linked examples. Groups that share a text get the
        lowest of their numbers; examples without a group follow.
    """
    names = examples.in_order({x.group for x in rows} - {""})
    ranks = {name: number for number, name in enumerate(names)}
    numbers: dict[int, int] = {}
    for first, example in zip(firsts, rows, strict=True):
        number = ranks.get(example.group, len(names) + first)
        numbers[first] = min(number, numbers.get(first, number))
    return [numbers[first] for first in firsts]
