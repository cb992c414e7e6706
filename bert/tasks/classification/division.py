"""Division of a table into rows for training and rows for evaluation.

Rows that belong together stay on one side: copies of a text, which would be
evaluated after training on them, and rows of one group.
"""

import dataclasses

import numpy as np

from bert.common.errors import UserError
from bert.tasks.classification.examples import Table, TextExample


def first_copies(examples: list[TextExample]) -> list[int]:
    """The number of the first example with the same texts, for each one."""
    numbers: dict[tuple[str, str], int] = {}
    return [
        numbers.setdefault((example.text, example.text_b), number)
        for number, example in enumerate(examples)
    ]


def together(examples: list[TextExample]) -> list[int]:
    """The number of the first example that each one has to stay with.

    It has the same texts, or the same group, or an example with the texts of
    the one is in the group of the other.
    """
    firsts: dict[str, int] = {}  # of each group
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
    """Divides a table at random; examples that belong together stay so.

    Args:
        table: the table.
        share: the share of the second part.
        seed: seed of the choice, any integer.
        by_label: whether the share is drawn from each label, or from all
            examples together, as of numbers and of several labels.

    Returns:
        the examples for training, and those for evaluation.

    Raises:
        UserError: one of them has no examples.
    """
    firsts = together(table.examples)
    by_key: dict[str, list[int]] = {}
    for number in sorted(set(firsts)):
        label = table.examples[number].label
        key = str(label).strip() if by_label else ""
        by_key.setdefault(key, []).append(number)
    generator = np.random.default_rng(seed % 2**63)  # a seed may be negative
    chosen = set()
    for _, numbers in sorted(by_key.items()):
        drawn = generator.permutation(numbers)
        if len(numbers) > 1:  # a label that occurs once is for training
            count = max(1, round(share * len(numbers)))
            chosen.update(drawn[:count].tolist())

    for_training, for_evaluation = [], []
    for number, example in zip(firsts, table.examples, strict=True):
        part = for_evaluation if number in chosen else for_training
        part.append(example)
    if not (for_training and for_evaluation):
        raise UserError(
            f"--eval_share={share} of {len(set(firsts)):,} different texts",
            path=table.file.path,
            expected="enough for training and evaluation",
        )
    return (
        dataclasses.replace(table, examples=for_training),
        dataclasses.replace(table, examples=for_evaluation),
    )
