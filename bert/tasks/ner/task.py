"""Token classification: words -> windows -> logits -> labels, entities.

No TensorFlow is imported.
"""

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bert.common.errors import UserError
from bert.common.formats.json_files import Json
from bert.data import feature_names
from bert.data.labels import Labels
from bert.data.postprocessing import log_softmax, softmax
from bert.data.sequences import Encoded, rows_of
from bert.data.tables import InputFile
from bert.data.text import words
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.task_heads import TOKENS
from bert.tasks import evaluation
from bert.tasks.labelled_task import LabelledRows, LabelledTask
from bert.tasks.metrics import ACCURACY
from bert.tasks.ner import conll, entities, metrics, windows
from bert.tasks.ner.entities import ANY, ENTITIES
from bert.tasks.ner.settings import Settings
from bert.tasks.task import Evaluation, ignore

TEXT, WORDS, SIGNATURE = "text", "words", "signature"
_SIZES = "sizes"  # number of words of each sentence of a document


class _Details(NamedTuple):
    """Values of an example that `decode` needs besides the outputs.

    Attributes:
        words: the words.
        records: the features of the windows.
        spans: first character of each word in the text, and first character
            after it; [] without a text.
        text: the text, or None.
        sizes: number of words of each sentence.
    """

    words: list[str]
    records: list[dict]
    spans: Sequence[tuple[int, int]]
    text: str | None
    sizes: list[int]


_Encoded = Encoded[_Details]


class TokenClassification(LabelledTask[Settings]):
    """Classification of words in texts of any length.

    Args:
        tokenizer: the model's tokenizer.
        labels: names of the labels, in the order of the logits.
        is_entities: bool. Whether the labels are BIO labels of entities.
        max_length: int. Longest window in tokens.
        stride: int. Tokens between the starts of two windows; 0: half a
            window.
        document_context: bool. Whether the sentences of a document are one
            example in `inputs_of`, so that windows cross sentences.

    Attributes:
        labels: Labels. Kind and names of the labels.
        is_entities: the argument.
    """

    name = "ner"
    head = TOKENS
    loss = "TokenLoss"
    inputs = (TEXT,)
    signatures = ("serving_default", WORDS)
    schema = windows.TRAINING_SCHEMA

    def __init__(
        self,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        is_entities: bool,
        max_length: int,
        stride: int = 0,
        document_context: bool = False,
    ):
        kind = ENTITIES if is_entities else ANY
        self.labels, self.is_entities = Labels(kind, (*labels,)), is_entities
        self.max_length, self.num_outputs = max_length, len(labels)
        self._stride, self._document_context = stride, document_context
        self.metric = "f1" if is_entities else "accuracy"
        exact = tokenizer.exact
        self._featurizer = windows.Featurizer(
            lambda word: exact.convert_tokens_to_ids(exact.tokenize(word)),
            exact.vocab,
            {label: i for i, label in enumerate(labels)},
            max_length,
            stride,
        )

    @classmethod
    def from_model(cls, model: ModelFolder) -> Self:
        """The task of a fine-tuned model, as recorded in its `task.json`."""
        task = model.task_json or {}
        # A folder of transformers does not record the kind.
        kind = task["kind"] or entities.kind_of(task["labels"])
        return cls(
            model.tokenizer,
            task["labels"],
            kind == ENTITIES,
            task.get("max_seq_length", model.max_length),
            task.get("doc_stride", 0),
            task.get("document_context", False),
        )

    def to_json(self) -> dict:
        """Returns the content of `task.json`, which `from_model` reads."""
        return {
            "kind": self.labels.kind,
            "labels": [*self.labels.names],
            "max_seq_length": self.max_length,
            "doc_stride": self._stride,
            "document_context": self._document_context,
        }

    def rows_to_fit(self, rows: list[conll.Sentence]) -> LabelledRows:
        """Draws the sentences whose words a linear model is fitted to."""
        order = evaluation.drawn_to_fit(len(rows))
        words = np.cumsum([len(rows[i].words) for i in order])
        drawn = [
            rows[i] for i in np.sort(order[words <= evaluation.MAX_FITTED])
        ]
        gold = self.ids_of([label for row in drawn for label in row.labels])
        return LabelledRows(drawn, gold)

    def compared(self, metrics: dict[str, float]) -> dict[str, float]:
        """Returns the metrics in which the first weights are a baseline."""
        # A precision alone is no better result.
        kept = {self.metric, ACCURACY, "loss"}
        return {k: x for k, x in metrics.items() if k in kept}

    def inputs_of(self, rows: list[conll.Sentence]) -> list[dict]:
        """Returns the words of sentences or documents, as for `encode`."""
        units = self._units(rows)
        return [
            {
                WORDS: [word for x in unit for word in x.words],
                _SIZES: [len(x.words) for x in unit],
            }
            for unit in units
        ]

    def ids_of(self, labels: Sequence[str]) -> NDArray:
        """Numbers of labels, in the order of the logits; of unknown ones, 0."""
        number = {name: i for i, name in enumerate(self.labels.names)}
        return np.array([number.get(label, 0) for label in labels])

    def num_examples(self, rows: list[conll.Sentence]) -> int:
        """Number of documents, or of sentences."""
        return sum(1 for _ in self._units(rows))

    def _units(
        self, rows: list[conll.Sentence]
    ) -> Iterator[list[conll.Sentence]]:
        """Yields the sentences of each document, or each sentence alone."""
        groups = itertools.groupby(
            enumerate(rows),
            lambda x: x[1].document if self._document_context else x[0],
        )
        for _, unit in groups:
            yield [sentence for _, sentence in unit]

    def encode(self, examples: list[dict[str, Json]]) -> list[_Encoded]:
        """Splits texts into words, and words into windows.

        Args:
            examples: dicts of `text`, or of `words`, a list. With "words" as
                `signature`, a text is split at white space only.
        """
        encoded = []
        for example in examples:
            text = example.get(TEXT)
            if text is None:
                found, spans = example[WORDS], []
            else:
                by_words = example.get(SIGNATURE) == WORDS
                spans = words.split(text, by_words)
                found = [text[start:end] for start, end in spans]
            records = [*self._featurizer.featurize(found)]
            sizes = example.get(_SIZES, [len(found)])
            details = _Details(found, records, spans, text, sizes)
            encoded.append(Encoded(rows_of(records), details=details))
        return encoded

    def records(
        self,
        rows: list[conll.Sentence],
        report: Callable[[Encoded], None] = ignore,
    ) -> Iterator[dict]:
        """Yields the windows of labelled sentences; see `Featurizer`."""
        for unit in self._units(rows):
            yield from self._featurizer.featurize(
                [word for x in unit for word in x.words],
                [label for x in unit for label in x.labels],
            )
            report(Encoded([]))

    def combine(self, encoded: _Encoded, outputs: list[NDArray]) -> NDArray:
        """Takes the logits of the words, float32 [W, C].

        A word is predicted in one window only, at its first token.
        """
        found = [
            logits[np.flatnonzero(record[feature_names.LABEL_WEIGHTS])]
            for record, logits in zip(encoded.details.records, outputs)
        ]
        if not found:
            return np.zeros((0, self.num_outputs), np.float32)
        return np.concatenate(found)

    def decode(
        self, encoded: Sequence[_Encoded], results: Sequence[NDArray]
    ) -> list[dict[str, Json]]:
        """Converts logits to predictions.

        Args:
            encoded: N examples.
            results: logits of the words of each, float32 [W, C].

        Returns:
            a dict for each example. `words` is a list of dicts of word, label
            and probability. For texts they also have start and end, in
            characters. If labels mark entities, `entities` is a list of dicts
            of entity, type, start, end and score. The score is the mean
            probability of its words. Without a text, start and end count words.
        """
        return [*map(self._prediction, encoded, results)]

    def _prediction(self, encoded: _Encoded, logits: NDArray) -> dict:
        found, _, spans, text, _ = encoded.details
        labels, probabilities = self._predicted(encoded, logits)
        listed: list[dict[str, Json]] = [
            {"word": word, "label": label, "probability": probability}
            for word, label, probability in zip(found, labels, probabilities)
        ]
        for entry, (start, end) in zip(listed, spans):
            entry |= {"start": start, "end": end}
        prediction = {WORDS: listed}
        if self.is_entities:
            prediction["entities"] = [
                self._entity(listed[first:last], kind, first, text)
                for first, last, kind in entities.find(labels)
            ]
        return prediction

    def _predicted(
        self, encoded: _Encoded, logits: NDArray
    ) -> tuple[list[str], list[float]]:
        """Returns label and probability of each word of an example.

        Entity labels become valid BIO, in each sentence for itself.
        """
        names = iter([self.labels.names[i] for i in logits.argmax(-1)])
        probabilities = softmax(logits.astype(np.float64)).max(-1).tolist()
        labels: list[str] = []
        for size in encoded.details.sizes:
            some = [*itertools.islice(names, size)]
            labels += entities.to_bio(some) if self.is_entities else some
        return labels, probabilities

    def _entity(
        self, entries: list[dict], kind: str, first: int, text: str | None
    ) -> dict:
        start, end = first, first + len(entries)
        entity = " ".join(x["word"] for x in entries)
        if text is not None:
            start, end = entries[0]["start"], entries[-1]["end"]
            entity = text[start:end]
        score = sum(x["probability"] for x in entries) / len(entries)
        return {
            "entity": entity,
            "type": kind,
            "start": start,
            "end": end,
            "score": score,
        }

    def _flat(
        self, encoded: Sequence[_Encoded], results: Sequence[NDArray]
    ) -> tuple[list[str], list[float]]:
        """Returns label and probability of each word of all examples."""
        labels: list[str] = []
        probabilities: list[float] = []
        for some, chances in map(self._predicted, encoded, results):
            labels += some
            probabilities += chances
        return labels, probabilities

    def score(
        self,
        rows: list[conll.Sentence],
        encoded: Sequence[_Encoded],
        results: Sequence[NDArray],
    ) -> Evaluation:
        """Scores the predicted labels of words; see `Task`."""
        predicted, probabilities = self._flat(encoded, results)
        gold = [label for x in rows for label in x.labels]
        if not gold:
            raise UserError("no words", expected="one or more")
        guesses = [*_by_sentence(rows, predicted)]
        score = metrics.score_entities
        if not self.is_entities:
            score = metrics.score_labels
        found = score([x.labels for x in rows], guesses)
        ids = self.ids_of(gold)
        logs = log_softmax(np.concatenate(results).astype(np.float64))
        losses = -np.take_along_axis(logs, ids[:, np.newaxis], -1)
        found["loss"] = float(losses.sum()) / len(losses)

        unknown = {*gold} - {*self.labels.names}
        warnings = evaluation.one_prediction_warnings(predicted, gold)
        if unknown:
            warnings.append(
                "labels that are not in the training data count as errors: "
                f"{', '.join(sorted(unknown))[:80]}"
            )
        report = self._report(rows, gold, predicted, probabilities)
        return Evaluation(found, report, predicted, warnings)

    def _report(
        self,
        rows: list[conll.Sentence],
        gold: list[str],
        predicted: list[str],
        probabilities: list[float],
    ) -> dict:
        """Reports on the labels of words.

        Args:
            rows: the sentences.
            gold, predicted: the true and the predicted label of each word.
            probabilities: the probability of each predicted label.
        """
        from bert.tasks import class_report  # takes a second

        # Labels that are not in the training data count as errors.
        known = self.labels.names
        names = [*known, *sorted({*gold} - {*known})]
        number = {name: i for i, name in enumerate(names)}

        places = [
            (line, [" ".join(x.words), word])
            for x in rows
            for line, word in zip(x.lines or itertools.repeat(0), x.words)
        ]
        errors = (
            {
                "line": line,
                "text": text,
                "label": label,
                "predicted": guess,
                "probability": probability,
            }
            for (line, text), label, guess, probability in zip(
                places, gold, predicted, probabilities
            )
            if label != guess
        )

        return class_report.of_classes(
            [number[label] for label in gold],
            [number[label] for label in predicted],
            names,
        ) | {"worst_errors": evaluation.worst(errors)}

    def baselines(
        self,
        rows: list[conll.Sentence],
        encoded: Sequence[_Encoded],
        train: list[conll.Sentence],
        settings: Settings,
    ) -> dict[str, float]:
        """Scores constant labels, fitted to the training words."""
        number = {name: i for i, name in enumerate(self.labels.names)}
        unknown = len(number)
        gold, trained = (
            [number.get(y, unknown) for x in part for y in x.labels]
            for part in (rows, train)
        )
        return evaluation.baselines_of_classes(gold, trained, unknown)

    def write_predictions(
        self,
        folder: str,
        file: InputFile,
        encoded: Sequence[_Encoded],
        results: Sequence[NDArray],
        settings: Settings,
    ) -> list[str]:
        """Writes the words and their predicted labels; returns the path."""
        predicted, _ = self._flat(encoded, results)
        path = os.path.join(folder, "predictions.conll")
        labels = [*_by_sentence(file.rows, predicted)]
        conll.write_predictions(file.path, path, file.rows, labels)
        return [path]


def _by_sentence(
    rows: list[conll.Sentence], labels: list[str]
) -> Iterator[list[str]]:
    """Yields the labels of each sentence."""
    rest = iter(labels)
    for sentence in rows:
        yield [*itertools.islice(rest, len(sentence.words))]
