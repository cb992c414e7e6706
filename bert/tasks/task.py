"""Interface of a task; all tasks are used in the same way.

    rows of a file -> inputs_of -> examples
    examples -> encode -> sequences -> network -> outputs -> combine -> results
    results -> decode -> predictions, JSON values
    results -> score  -> metrics and a report

`inference.predictor.Predictor` computes results and predictions, for scripts,
servers and Keras classes. No task imports TensorFlow.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, Generic, NamedTuple, Self

from numpy.typing import NDArray

from bert.common.formats.json_files import Json
from bert.data.pooling import PoolingConfig
from bert.data.records.encoding import RecordSchema
from bert.data.sequences import Encoded, TaskResult
from bert.data.tables import InputFile
from bert.modeling.formats.model_folder import ModelFolder
from bert.tasks.finetuning_settings import FineTuningT

AT_ONCE = 1024  # examples to tokenize together
TRAIN, DEV, TEST = "train", "dev", "test"
Files = dict[str, list[InputFile]]  # TRAIN, DEV or TEST -> files of a run


class Evaluation(NamedTuple):
    """Scores of the predictions for a file.

    Attributes:
        metrics: dict. Name -> value.
        report: dict. Other values of `eval_report.json`.
        predicted: list. The prediction of each example, for comparisons; []
            for numbers.
        warnings: list of str. Warnings about the predictions.
        losses: float64 [N] or None. Loss of each example, if the original
            reports their mean over batches.
    """

    metrics: dict[str, float]
    report: dict[str, Json]
    predicted: list
    warnings: list[str]
    losses: NDArray | None = None


def ignore(encoded: Encoded) -> None:
    """Ignores an encoded example."""


class Task(Generic[FineTuningT]):
    """Base class of the tasks.

    Attributes:
        name: str. Name of the task in reports.
        head: str or None. Key of `HEADS`, or None for no head.
        loss: str or None. Class of its loss in `modeling.task_losses`. None:
            `runs.objectives` makes it from the labels or the pooling, and the
            settings of the script. Default: None.
        num_outputs: int or None. Size of the last axis of the outputs.
        max_length: int. Longest sequence in tokens.
        inputs: tuple of str. Names of the fields of an example, in order.
        optional_inputs: tuple of str. Names of optional fields.
        signatures: tuple of str. Names of the input formats. The first is the
            default.
        can_rank: bool. Whether the texts of a query get scores, see
            `inference.ranking`.
        sequences: int. Number of sequences of a training record.
        schema: RecordSchema. Features of a record besides the sequences.
        metric: str. Name of the metric that selects the best weights.
        prefix: str. Prefix of the metrics in files, as in the original.
        compares_before: bool. Whether the weights before training are a
            baseline.
        reads_windows: bool. Whether longer texts are read in windows instead
            of truncated.
        pooling_config: PoolingConfig or None. Pooling of embeddings; None for
            tasks with a head, which have a `task.json` instead.
        joins_folds: bool. Whether the task has `write_out_of_fold`.
    """

    name: str
    head: str | None
    loss: ClassVar[str | None] = None
    num_outputs: int | None
    max_length: int
    inputs: tuple[str, ...]
    optional_inputs: tuple[str, ...] = ()
    signatures: ClassVar[tuple[str, ...]] = ("serving_default",)
    can_rank: bool = False
    sequences: int = 1
    schema: RecordSchema
    metric: str
    prefix: ClassVar[str] = "eval_"
    compares_before: ClassVar[bool] = False
    reads_windows: bool = False
    pooling_config: PoolingConfig | None = None
    joins_folds: ClassVar[bool] = False

    @classmethod
    def from_model(cls, model: ModelFolder) -> Self:
        """Returns the task of a model, as its files describe it.

        Args:
            model: ModelFolder. The model.
        """
        raise NotImplementedError

    def encode(self, examples: list[dict]) -> list[Encoded]:
        """Converts examples to sequences.

        Args:
            examples: list of dict. Values of `inputs`.
        """
        raise NotImplementedError

    def encode_all(self, examples: Iterable[dict]) -> Iterator[Encoded]:
        """Converts any number of examples to sequences, lazily.

        Args:
            examples: iterable of dict. See `encode`.
        """
        rest = iter(examples)
        while some := [*itertools.islice(rest, AT_ONCE)]:
            yield from self.encode(some)

    def encode_rows(self, rows: list) -> Iterator[Encoded]:
        """Converts rows that do not depend on each other, lazily.

        Args:
            rows: list. See `inputs_of`.
        """
        return self.encode_all(x for row in rows for x in self.inputs_of([row]))

    def combine(self, encoded: Encoded, outputs: list[NDArray]) -> TaskResult:
        """Combines the outputs of the sequences of an example to its result.

        Args:
            encoded: Encoded. The example.
            outputs: list of arrays. float32 [C] of each sequence for a head
                on `[CLS]`, else float32 [S, ...].
        """
        raise NotImplementedError

    def decode(self, encoded: list[Encoded], results: list) -> list[dict]:
        """Converts results to predictions, which all entry points show.

        Args:
            encoded: list of N Encoded. The examples.
            results: list of N results of `combine`.

        Returns:
            list of N dicts of JSON values.
        """
        raise NotImplementedError

    def inputs_of(self, rows: list) -> list[dict]:
        """Returns the examples of rows of a file, for `encode`."""
        raise NotImplementedError

    def num_examples(self, rows: list) -> int:
        """Number of the examples of rows, see `inputs_of`."""
        return len(rows)

    def records(
        self, rows: list, report: Callable[[Encoded], None] = ignore
    ) -> Iterator[dict]:
        """Yields training records of labelled rows.

        Args:
            rows: list. Labelled rows of a file.
            report: function. Called with each example that was encoded.
                Default: no function.

        Yields:
            feature name -> values: `input_ids` and `segment_ids`, lists of
            them if `sequences` is above 1, and the targets in `schema`.
        """
        raise NotImplementedError

    def score(
        self, rows: list, encoded: list[Encoded], results: list
    ) -> Evaluation:
        """Scores predictions, as `decode` shows them.

        Args:
            rows: list. Labelled rows of a file.
            encoded: list of Encoded. Their examples, see `inputs_of`.
            results: list. The results of the examples.
        """
        raise NotImplementedError

    def baselines(
        self,
        rows: list,
        encoded: list[Encoded],
        train: list,
        settings: FineTuningT,
    ) -> dict[str, float]:
        """Scores simple predictions, see `tasks.eval_report`.

        Args:
            rows, encoded: see `score`.
            train: list. Rows of training, to which baselines are fitted; the
                evaluated rows in a run that does not train.
            settings: settings of the script.

        Returns:
            dict. "metric/kind" -> value. Default: {}.
        """
        return {}

    def compared(self, metrics: dict[str, float]) -> dict[str, float]:
        """Returns the metrics in which the first weights are a baseline."""
        return metrics

    def fit_decision(
        self,
        rows: list,
        encoded: list[Encoded],
        results: list,
        settings: FineTuningT,
    ) -> tuple[Self, Evaluation]:
        """Fits the post-processing to labelled rows.

        Only for settings with `fits_decision`.

        Args:
            rows, encoded, results: see `score`.
            settings: settings of the script.

        Returns:
            The task with the fitted post-processing, and the scores.
        """
        raise NotImplementedError

    def write_predictions(
        self,
        folder: str,
        file: InputFile,
        encoded: list[Encoded],
        results: list,
        settings: FineTuningT,
    ) -> list[str]:
        """Writes the predictions for a file; returns the paths.

        Args:
            folder: str. Folder to write to.
            file: InputFile. The file.
            encoded, results: see `score`.
            settings: settings of the script.
        """
        raise NotImplementedError

    def write_out_of_fold(
        self,
        folder: str,
        rows: list,
        encoded: list[Encoded],
        results: list,
        folds: list[str],
    ) -> list[str]:
        """Writes the predictions for the rows of all folds.

        Args:
            folder: str. Folder to write to.
            rows, encoded, results: see `score`.
            folds: list of str. Name of the fold of each row.

        Returns:
            The paths of the files.
        """
        raise NotImplementedError

    def example(self, rows: list) -> dict[str, str]:
        """Returns an example of rows, as the example input of an export."""
        return {}

    def to_json(self) -> dict:
        """Returns the content of `task.json`, which `from_model` reads."""
        raise NotImplementedError
