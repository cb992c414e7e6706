"""Interface of the tasks whose new head can start from frozen features."""

from typing import NamedTuple

from numpy.typing import NDArray

from bert.data.labels import Labels
from bert.tasks.finetuning_settings import FineTuningT
from bert.tasks.task import Task


class LabelledRows(NamedTuple):
    """Rows with the labels that a linear model predicts.

    Attributes:
        rows: list. The rows.
        gold: int or float [N] or [N, C]. Labels of the rows, or of their words.
        weights: float [N] or None. Weights of the labels.
    """

    rows: list
    gold: NDArray
    weights: NDArray | None = None


class LabelledTask(Task[FineTuningT]):
    """Task that predicts a label, labels or a number from one output.

    Attributes:
        labels: Labels. Kind and names of the labels.
    """

    labels: Labels
    num_outputs: int

    def rows_to_fit(self, rows: list) -> LabelledRows:
        """Draws the rows that a linear model is fitted to.

        Args:
            rows: list. Training rows.

        Returns:
            at most `MAX_FITTED` labels, and their rows in the order of `rows`.
        """
        raise NotImplementedError

    def fit_words(self, labelled: LabelledRows) -> NDArray | None:
        """Fits a linear model of the words, if it predicts the labels.

        Args:
            labelled: LabelledRows. Result of `rows_to_fit`.

        Returns:
            float32 [V, C]. Weight of each token for each output; None if the
            model does not predict left-out texts, see `FrozenHead`, or if
            single words have labels.
        """
        return None
