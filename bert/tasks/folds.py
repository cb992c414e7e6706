"""Folds of a training file: each is held out for evaluation once."""

import itertools
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bert.common.errors import UserError
from bert.common.progress import log
from bert.data.tables import InputFile, Row
from bert.tasks.finetuning_settings import SweepFlags
from bert.tasks.task import DEV, TEST, TRAIN, Files


def files_of(
    settings: SweepFlags,
    read: Mapping[str, InputFile[Row]],
    key: Callable[[Row], Hashable],
) -> Files:
    """Returns the files of a run; a fold divides the training file.

    Args:
        settings: SweepFlags. Settings of the script.
        read: dict. "train_file", "eval_file" or "predict_file" -> the file.
        key: function. Rows with equal keys stay together.

    Raises:
        UserError: there are too few rows.
    """
    if settings.fold:
        whole = read["train_file"]
        train, dev = divide(settings, whole.path, whole.rows, key)
        read = {
            **read,
            "train_file": whole.with_rows(train),
            "eval_file": whole.with_rows(dev),
        }
    names = {TRAIN: "train_file", DEV: "eval_file", TEST: "predict_file"}
    return {
        part: [read[name]] if name in read else []
        for part, name in names.items()
    }


def divide(
    settings: SweepFlags,
    path: str,
    rows: Sequence[Row],
    key: Callable[[Row], Hashable],
) -> tuple[list[Row], list[Row]]:
    """Divides the rows of --train_file for the run of a fold.

    Args:
        settings: SweepFlags. Settings of the script, with the fold.
        path: str. The file, for messages.
        rows: sequence. Rows of the file.
        key: function. Rows with equal keys stay together.

    Returns:
        rows for training, and rows for evaluation.

    Raises:
        UserError: there are too few rows.
    """
    numbers: dict[Hashable, int] = {}
    groups = [numbers.setdefault(key(row), len(numbers)) for row in rows]
    is_held_out = held_out(settings, path, groups)
    for_training, for_evaluation = (
        [*itertools.compress(rows, chosen)]
        for chosen in (~is_held_out, is_held_out)
    )
    return for_training, for_evaluation


def held_out(
    settings: SweepFlags,
    path: str,
    groups: Sequence[int],
    labels: Sequence[int] | None = None,
) -> NDArray:
    """Draws the held-out rows of a fold, as scikit-learn does.

    Args:
        settings: SweepFlags. Settings of the script, with the fold.
        path: str. Training file, for messages.
        groups: sequence of int. Group of each of N rows; the rows of a group
            stay together.
        labels: sequence of N ints, or None. Class ids, which stratify the
            folds.

    Returns:
        bool [N], whether a row is held out.

    Raises:
        UserError: there are too few rows.
    """
    from sklearn import model_selection  # takes a second

    count = settings.num_folds
    distinct = len(set(groups))
    if distinct < count:
        raise UserError(
            f"--num_folds={count} with {distinct:,} different texts or groups",
            path=path,
            expected=f"at least {count}",
        )

    # Without groups, as scikit-learn stratifies less exactly with them.
    is_grouped = distinct < len(groups)
    splitter = {  # (by label, in groups) -> class
        (True, False): model_selection.StratifiedKFold,
        (True, True): model_selection.StratifiedGroupKFold,
        (False, False): model_selection.KFold,
        (False, True): model_selection.GroupKFold,
    }[labels is not None, is_grouped](
        count, shuffle=True, random_state=settings.random_seed % 2**32
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            pairs = [
                *splitter.split(groups, labels, groups if is_grouped else None)
            ]
        except ValueError as error:
            text = f"--num_folds={count}: {error}"
            raise UserError(text, path=path) from None
    for warning in caught:
        log(f"warning: {path}: {warning.message}")

    _, chosen = pairs[settings.fold - 1]
    return np.isin(np.arange(len(groups)), chosen)
