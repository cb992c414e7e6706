"""Baselines of pre-training metrics, computed from the evaluated batches."""

import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from bert.data import feature_names
from bert.tasks.evaluation import CHANCE, MAJORITY, UNIGRAMS


class TargetCounts:
    """Counts the masked tokens and the next sentence labels of batches.

    Args:
        vocab_size: int. V.
    """

    def __init__(self, vocab_size: int):
        self._tokens = np.zeros(vocab_size, np.int64)
        self._pairs = np.zeros(2, np.int64)

    def watch(self, batches: Iterable[dict]) -> Iterator[dict]:
        """Yields the batches, and counts their targets."""
        for batch in batches:
            # Packed rows hold several pairs; otherwise whole rows are padding.
            weights = batch.get(feature_names.NEXT_SENTENCE_WEIGHTS)
            if weights is None:
                weights = batch[feature_names.IS_REAL_EXAMPLE]
            _add(
                self._pairs, batch[feature_names.NEXT_SENTENCE_LABELS], weights
            )
            shown = batch[feature_names.MASKED_LM_WEIGHTS]
            _add(self._tokens, batch[feature_names.MASKED_LM_IDS], shown)
            yield batch

    def baselines(self) -> dict[str, float]:
        """Baselines by name, see `tasks.eval_report`."""
        vocab_size = len(self._tokens)
        found = {
            f"masked_lm_loss/{CHANCE}": math.log(vocab_size),
            f"next_sentence_loss/{CHANCE}": math.log(2),
        }

        # Frequencies need at least one target.
        if self._tokens.any():
            fraction = float(self._tokens.max() / self._tokens.sum())
            found[f"masked_lm_loss/{UNIGRAMS}"] = float(
                stats.entropy(self._tokens)
            )
            found[f"masked_lm_accuracy/{MAJORITY}"] = fraction
        if self._pairs.any():
            fraction = float(self._pairs.max() / self._pairs.sum())
            found[f"next_sentence_accuracy/{MAJORITY}"] = fraction
        return found


def _add(counts: NDArray, ids, shown) -> None:
    """Counts the ids, int [...], whose weight in `shown` is not 0."""
    real = np.ravel(ids)[np.ravel(shown) > 0]
    counts += np.bincount(real, minlength=len(counts))
