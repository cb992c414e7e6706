"""Splits a table into rows for training and rows for evaluation.

Copies of a text, and rows of one group, stay in the same split. Otherwise the
model would be evaluated on texts that it was trained on.
"""

import dataclasses

import numpy as np

from bert.common.errors import UserError
from bert.data.tables import Table
from bert.tasks.classification.examples import TextExample


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


def divide(
    table: Table, share: float, seed: int, by_label: bool
) -> tuple[Table, Table]:
    """Splits a table at random; linked examples stay together.

    Args:
        table: the table.
        share: float. Fraction of the examples for evaluation.
        seed: int. Seed of the random choice; may be negative.
        by_label: bool. Whether to split each label separately (stratified).

    Returns:
        the table for training and the table for evaluation.

    Raises:
        UserError: one of the two would be empty.
    """
    firsts = together(table.rows)
    by_key: dict[str, list[int]] = {}
    for number in sorted(set(firsts)):
        label = table.rows[number].label
        key = str(label).strip() if by_label else ""
        by_key.setdefault(key, []).append(number)
    generator = np.random.default_rng(seed % 2**63)  # a seed may be negative
    chosen = set()
    for _, numbers in sorted(by_key.items()):
        drawn = generator.permutation(numbers)
        if len(numbers) > 1:  # a label that occurs once stays in training
            count = max(1, round(share * len(numbers)))
            chosen.update(drawn[:count].tolist())

    for_training, for_evaluation = [], []
    for number, example in zip(firsts, table.rows, strict=True):
        part = for_evaluation if number in chosen else for_training
        part.append(example)
    if not (for_training and for_evaluation):
        raise UserError(
            f"--eval_share={share} of {len(set(firsts)):,} different texts",
            path=table.path,
            expected="enough for training and evaluation",
        )
    return (
        dataclasses.replace(table, rows=for_training),
        dataclasses.replace(table, rows=for_evaluation),
    )
