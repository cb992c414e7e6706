"""Folds for cross-validation: each is held out for evaluation once."""

import dataclasses
import itertools
import warnings
from collections.abc import Iterator

import numpy as np
from sklearn import model_selection

from bert.common.errors import UserError
from bert.common.progress import say
from bert.data.label_kinds import CLASSES
from bert.tasks.classification import division, examples, weights
from bert.tasks.classification.examples import TextExample
from bert.tasks.classification.inputs import DEV, TRAIN, Data, Part
from bert.tasks.classification.settings import Settings

_SPLITTERS = {  # (by label, in groups) -> class of scikit-learn
    (True, False): model_selection.StratifiedKFold,
    (True, True): model_selection.StratifiedGroupKFold,
    (False, False): model_selection.KFold,
    (False, True): model_selection.GroupKFold,
}


def of_data(settings: Settings, data: Data) -> Iterator[Data]:
    """Yields the data of each fold: examples for training and evaluation.

    Args:
        settings: the settings of the script, with --num_folds.
        data: the input files; all examples are for training.

    Raises:
        UserError: there are too few examples.
    """
    seed = settings.random_seed
    (whole,), given = data.of(TRAIN), settings.class_weights
    by_label = data.labels.kind == CLASSES
    drawn = held_out(whole, settings.num_folds, seed, by_label)
    for number, is_held_out in enumerate(drawn, 1):
        sides = [
            [*itertools.compress(whole.examples, is_chosen)]
            for is_chosen in (~is_held_out, is_held_out)
        ]

        # Part of the digest: a resumed run must have the same rows.
        rows = f"fold {number} of {settings.num_folds}, {seed}"
        rows += (
            f", sorted {settings.group_column}"
            if settings.group_column
            else ", None"
        )
        parts = [
            dataclasses.replace(whole, split=split, examples=side, rows=rows)
            for split, side in zip((TRAIN, DEV), sides)
        ]
        class_weights = data.class_weights
        if given:
            labels = parts[0].labels
            class_weights = weights.of_labels(given, data.labels, labels)
        yield dataclasses.replace(
            data, parts=tuple(parts), class_weights=class_weights
        )


def held_out(
    part: Part, count: int, seed: int, by_label: bool
) -> list[np.ndarray]:
    """Draws folds at random; linked examples stay in the same fold.

    Args:
        part: the N examples, labelled; see `division.together` for links.
        count: int. Number of folds.
        seed: int. Seed of the random choice; may be negative.
        by_label: bool. Whether to stratify the folds by label.

    Returns:
        for each fold bool [N], whether an example is held out.

    Raises:
        UserError: there are too few examples.
    """
    firsts = division.together(part.examples)
    distinct = len(set(firsts))
    if distinct < count:
        raise UserError(
            f"--num_folds={count} with {distinct:,} different texts or groups",
            path=part.path,
            expected=f"at least {count}",
        )

    # Without groups, as scikit-learn stratifies less exactly with them.
    is_grouped = distinct < len(firsts)
    splitter = _SPLITTERS[by_label, is_grouped](
        count, shuffle=True, random_state=seed % 2**32
    )
    groups = _numbered(part.examples, firsts) if is_grouped else None
    labels = part.labels if by_label else None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            pairs = [*splitter.split(firsts, labels, groups)]
        except ValueError as error:
            text = f"--num_folds={count}: {error}"
            raise UserError(text, path=part.path) from None
    for warning in caught:
        say(f"warning: {part.path}: {warning.message}")

    numbers = np.arange(len(firsts))
    return [np.isin(numbers, chosen) for _, chosen in pairs]


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
