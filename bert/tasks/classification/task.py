"""Classification of texts or pairs: sequences, logits, labels and scores.

No TensorFlow is imported.
"""

import copy
import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bert.common.formats.json_files import Json
from bert.common.progress import log
from bert.data import feature_names, postprocessing
from bert.data.labels import (
    CLASSES,
    MULTI_LABEL,
    REGRESSION,
    Labels,
    PostProcessing,
)
from bert.data.records.encoding import Feature
from bert.data.sequences import FIRST_TOKENS, Encoded, LongTexts
from bert.data.tables import InputFile
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.task_heads import CLASSIFIER
from bert.tasks import evaluation
from bert.tasks.classification import prediction_files
from bert.tasks.classification.files import TextExample, is_labelled, labels_of
from bert.tasks.classification.glue import GLUE_TASKS
from bert.tasks.classification.settings import Settings
from bert.tasks.labelled_task import LabelledRows, LabelledTask
from bert.tasks.metrics import reported
from bert.tasks.task import Evaluation, ignore

TEXT, TEXT_B = "text", "text_b"
_SHORT = 100  # characters of an export's example text
RELEVANT = "1"  # label of a text that is relevant to a query


class TextClassification(LabelledTask[Settings]):
    """Classification of texts or of pairs of texts.

    Args:
        tokenizer: the model's tokenizer.
        labels: kind and names of the labels, with their post-processing.
        max_length: int. Longest sequence in tokens.
        long_texts: truncation or windows of longer texts.
        has_pairs: bool or None. Whether an example has a second text; None
            if it is optional.
        class_weights: tuple of C floats, or (). Weight of each label in the
            training loss.
        metrics: tuple of str. Names of metrics. Default: the metrics of the
            kind of labels.
        metric: str or None. Metric that selects the best weights. Default:
            the first of `metrics`.
        name: str. Name of the data set. Default: "tsv".

    Attributes:
        labels, long_texts, class_weights: the arguments.
    """

    head = CLASSIFIER
    joins_folds = True

    def __init__(
        self,
        tokenizer: Tokenizer,
        labels: Labels,
        max_length: int,
        long_texts: LongTexts = FIRST_TOKENS,
        has_pairs: bool | None = False,
        class_weights: tuple[float, ...] = (),
        metrics: tuple[str, ...] = (),
        metric: str | None = None,
        name: str = "tsv",
    ):
        self.tokenizer, self.labels, self.name = tokenizer, labels, name
        self.max_length, self.long_texts = max_length, long_texts
        self._has_pairs, self.class_weights = has_pairs, class_weights
        self.metrics = metrics or reported(labels.kind)
        self.metric = metric or self.metrics[0]

        self.inputs = (TEXT, TEXT_B) if has_pairs else (TEXT,)
        self.optional_inputs = (TEXT_B,) if has_pairs is None else ()
        self.num_outputs = labels.size
        self.reads_windows = bool(long_texts.pool)
        is_score = labels.kind == REGRESSION or RELEVANT in labels.names
        self.can_rank = has_pairs is not False and is_score

        dtype = "float32" if labels.kind == REGRESSION else "int64"
        size = labels.size if labels.kind == MULTI_LABEL else 1
        self.schema = {
            feature_names.LABEL_IDS: Feature(dtype, size=size),
            feature_names.IS_REAL_EXAMPLE: Feature(),
        }

    @classmethod
    def from_model(cls, model: ModelFolder) -> Self:
        """The task of a fine-tuned model, as recorded in its `task.json`."""
        task = model.task_json or {}
        return cls(
            model.tokenizer,
            Labels.of_task(task),
            task.get("max_seq_length", model.max_length),
            LongTexts.of_task(task),
            # A folder of transformers does not record it.
            task.get("pairs", None if model.format == "huggingface" else False),
        )

    def to_json(self) -> dict:
        """Returns the content of `task.json`, which `from_model` reads."""
        labels, weights = self.labels, [*self.class_weights]
        return {
            "kind": labels.kind,
            "labels": [*labels.names],
            **({} if self._has_pairs is False else {"pairs": self._has_pairs}),
            "max_seq_length": self.max_length,
            **self.long_texts.described(),
            **({"class_weights": weights} if weights else {}),
            **labels.decision.described(),
        }

    def with_decision(self, decision: PostProcessing) -> Self:
        """Returns the task with another post-processing of logits."""
        task = copy.copy(self)
        task.labels = dataclasses.replace(self.labels, decision=decision)
        return task

    def inputs_of(self, rows: list[TextExample]) -> list[dict[str, str]]:
        """Returns the texts of rows, as dicts for `encode`."""
        return [{TEXT: x.text, TEXT_B: x.text_b} for x in rows]

    def rows_to_fit(self, rows: list[TextExample]) -> LabelledRows:
        """Draws the labelled rows that a linear model is fitted to."""
        labelled = [row for row in rows if row.label is not None]
        drawn = np.sort(evaluation.drawn_to_fit(len(labelled)))
        labelled = [labelled[i] for i in drawn]
        gold, weights = labels_of(labelled), None
        if self.class_weights and self.labels.kind == CLASSES:
            weights = np.array(self.class_weights)[gold]
        return LabelledRows(labelled, gold, weights)

    def fit_words(self, labelled: LabelledRows) -> NDArray | None:
        """Fits a linear model of the words, if it predicts the labels."""
        from bert.tasks.classification import tfidf

        rows, gold, weights = labelled
        return tfidf.fit_words(
            tfidf.bags_of(rows, self.tokenizer),
            gold,
            self.labels.kind,
            self.num_outputs,
            len(self.tokenizer.vocab),
            weights,
        )

    def encode(self, examples: list[dict[str, str]]) -> list[Encoded]:
        """Converts texts to sequences.

        Args:
            examples: dicts of `text` and, for pairs, `text_b`.
        """
        return self.tokenizer.encode_texts(
            [x[TEXT] for x in examples],
            [x.get(TEXT_B, "") for x in examples],
            self.max_length,
            self.long_texts,
        )

    def records(
        self,
        rows: list[TextExample],
        report: Callable[[Encoded], None] = ignore,
    ) -> Iterator[dict]:
        """Yields a training record of each row; long texts are truncated."""
        truncating = copy.copy(self)
        truncating.long_texts = self.long_texts.without_windows()
        for row, encoded in zip(
            rows, truncating.encode_rows(rows), strict=True
        ):
            report(encoded)
            ((ids, segments),) = encoded.sequences
            label = row.label
            if label is None:  # only a teacher's outputs are learned
                label = [0] * self.schema[feature_names.LABEL_IDS].size
            yield {
                feature_names.INPUT_IDS: ids,
                feature_names.SEGMENT_IDS: segments,
                feature_names.LABEL_IDS: (
                    label if isinstance(label, list) else [label]
                ),
                feature_names.IS_REAL_EXAMPLE: [1],
            }

    def combine(self, encoded: Encoded, outputs: list[NDArray]) -> NDArray:
        """Pools the logits of the windows of a text, float32 [C]."""
        logits = np.stack(outputs)
        return self.long_texts.pooled(logits, [len(outputs)])[0]

    def decode(
        self, encoded: Sequence[Encoded], results: Sequence[NDArray]
    ) -> list[dict[str, Json]]:
        """Converts logits to predictions.

        Args:
            encoded: N examples.
            results: logits, float32 [C], of each.

        Returns:
            a dict for each example. For classes: `label`, a name, or None if
            the prediction is rejected or the logits are not finite, and
            `probabilities`, name -> float.
            With several labels, `label` is a list of names. For regression:
            `value`, a float.
        """
        labels, logits = self.labels, self._stacked(results)
        kind, decision = labels.kind, labels.decision
        if kind == REGRESSION:
            return [{"value": x} for x in logits[:, 0].tolist()]

        predicted = postprocessing.predictions(logits, kind, decision)
        chances = postprocessing.probabilities(logits, kind, decision)
        shown: list = [self.shown(x) for x in predicted]
        if kind == CLASSES:
            rejected = postprocessing.is_rejected(chances, predicted, decision)
            shown = [None if x else name for name, x in zip(shown, rejected)]
        return [
            {"label": label, "probabilities": dict(zip(labels.names, row))}
            for label, row in zip(shown, chances.tolist())
        ]

    def shown(self, label: Json) -> Json:
        """Converts a label in the form of the network to its name or names.

        Args:
            label: int, a class; C zeros and ones; or a number.
        """
        names = self.labels.names
        if self.labels.kind == CLASSES:
            return names[label]
        if self.labels.kind == MULTI_LABEL:
            return [name for name, x in zip(names, label) if x]
        return label

    def score(
        self,
        rows: list[TextExample],
        encoded: Sequence[Encoded],
        results: Sequence[NDArray],
    ) -> Evaluation:
        """Scores the predictions of labelled texts; see `Task`."""
        return _scores().evaluate(self, rows, self._stacked(results))

    def fit_decision(
        self,
        rows: list[TextExample],
        encoded: Sequence[Encoded],
        results: Sequence[NDArray],
        settings: Settings,
    ) -> tuple[Self, Evaluation]:
        """Fits thresholds or a temperature; the scores are cross-fitted."""
        from bert.tasks.classification import fitting

        logits = self._stacked(results)
        decision, evaluation = fitting.fit(self, rows, logits, settings)
        return self.with_decision(decision), evaluation

    def baselines(
        self,
        rows: list[TextExample],
        encoded: Sequence[Encoded],
        train: list[TextExample],
        settings: Settings,
    ) -> dict[str, float]:
        """Scores constant predictions, and the linear model of words."""
        from bert.tasks.classification import tfidf

        gold, trained = labels_of(rows), labels_of(train)
        found = _scores().baselines(self.labels, gold, trained)
        if settings.tfidf_baseline and train is not rows:
            found |= tfidf.baseline(self, rows, train)
        return found

    def write_predictions(
        self,
        folder: str,
        file: InputFile,
        encoded: Sequence[Encoded],
        results: Sequence[NDArray],
        settings: Settings,
    ) -> list[str]:
        """Writes the files of predictions; returns the paths."""
        predicted = self.decode(encoded, results)
        wrote = prediction_files.write(folder, file, predicted, self)

        # A labelled test file is scored, but never used for selection.
        if is_labelled(file.rows):
            found = postprocessing.predictions(
                self._stacked(results), self.labels.kind, self.labels.decision
            )
            gold = labels_of(file.rows)
            metrics = _scores().compute(self.metrics, gold, found)
            shown = [f"{name} {metrics[name]:.4f}" for name in self.metrics]
            log(f"{file.path} | {' | '.join(shown)}")
        if settings.glue_dir:
            name = GLUE_TASKS[settings.dataset_name].submission(file.subset)
            wrote.append(
                prediction_files.write_submission(
                    settings.glue_dir, name, file.rows, predicted
                )
            )
        return wrote

    def write_out_of_fold(
        self,
        folder: str,
        rows: list[TextExample],
        encoded: Sequence[Encoded],
        results: Sequence[NDArray],
        folds: list[str],
    ) -> list[str]:
        """Writes the predictions for the rows of all folds; see `Task`."""
        path = os.path.join(folder, prediction_files.OUT_OF_FOLD)
        predicted = self.decode(encoded, results)
        prediction_files.write_predictions(path, rows, predicted, self, folds)
        return [path]

    def example(self, rows: list[TextExample]) -> dict[str, str]:
        """Returns a short text of rows."""
        row = min(rows, key=lambda x: abs(len(x.text) - _SHORT))
        return {TEXT: row.text, TEXT_B: row.text_b}

    def _stacked(self, results: Sequence[NDArray]) -> NDArray:
        """Returns the logits of N texts, float32 [N, C]."""
        return np.reshape([*results], (-1, self.num_outputs)).astype(np.float32)


def _scores():
    """Returns the module `scores`; importing scikit-learn takes a second."""
    from bert.tasks.classification import scores

    return scores
