"""Token classification: words -> windows -> logits -> labels, entities.

No TensorFlow is imported.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from bert.data import features
from bert.data.postprocessing import log_softmax
from bert.data.sequences import Encoded, rows_of
from bert.data.text import words
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.task_heads import TOKENS
from bert.tasks.ner import conll, entities, windows
from bert.tasks.ner.entities import ENTITIES

TEXT, WORDS, SIGNATURE = "text", "words", "signature"
Answer = tuple[str, float, float]  # label, loss of the true label, probability


class TokenClassification:
    """Classification of words in texts of any length.

    Args:
        tokenizer: the model's tokenizer.
        labels: names of the labels, in the order of the logits.
        is_entities: bool. Whether the labels are BIO labels of entities.
        max_length: int. Longest window in tokens.
        stride: int. Tokens between the starts of two windows; 0: half a
            window.
        document_context: bool. Whether windows of sentences in `windows_of`
            cross sentences of the same document.

    Attributes:
        inputs: names of the fields of an example.
        num_outputs: C, the number of logits of a token.
        is_entities: the argument.
    """

    head = TOKENS
    inputs, optional_inputs = (TEXT,), ()
    signatures = ("serving_default", WORDS)
    can_rank = False

    def __init__(
        self,
        tokenizer: Tokenizer,
        labels: Sequence[str],
        is_entities: bool,
        max_length: int,
        stride: int = 0,
        document_context: bool = False,
    ):
        self._labels, self.is_entities = labels, is_entities
        self.max_length, self.num_outputs = max_length, len(labels)
        exact = tokenizer.exact
        self._featurizer = windows.Featurizer(
            lambda word: exact.convert_tokens_to_ids(exact.tokenize(word)),
            exact.vocab,
            {label: i for i, label in enumerate(labels)},
            max_length,
            stride,
            document_context,
        )

    @classmethod
    def from_model(cls, model: ModelFolder) -> "TokenClassification":
        """The task of a fine-tuned model, as recorded in its `task.json`."""
        task = model.task
        # A folder of transformers does not record the kind.
        kind = task["kind"] or entities.kind_of(task["labels"])
        return cls(
            model.tokenizer,
            task["labels"],
            kind == ENTITIES,
            task.get("max_seq_length", model.max_length),
            task.get("doc_stride", 0),
        )

    def encode(self, examples: list[dict[str, Any]]) -> list[Encoded]:
        """Splits texts into words, and words into windows.

        Args:
            examples: dicts of `text`, or of `words`, a list. With "words" as
                `signature`, a text is split at white space only.
        """
        encoded = []
        for example in examples:
            spans: list[tuple[int, int]] = []
            found, text = example.get(WORDS), example.get(TEXT)
            if text is not None:
                by_words = example.get(SIGNATURE) == WORDS
                spans = words.split(text, by_words)
                found = [text[start:end] for start, end in spans]
            sentence = conll.Sentence(found, [], [], 0)
            encoded.append(self.encode_sentence(sentence, spans, text))
        return encoded

    def encode_sentence(
        self,
        sentence: conll.Sentence,
        spans: Sequence[tuple[int, int]] = (),
        text: str | None = None,
    ) -> Encoded:
        """Splits a sentence into windows.

        Args:
            sentence: the words, with or without labels.
            spans: list of (int, int). First character of each word in the
                text, and first character after it.
            text: str or None. The text.
        """
        records = self.windows_of([sentence])
        details = sentence, records, spans, text
        return Encoded(rows_of(records), details=details)

    def windows_of(self, sentences: Iterable[conll.Sentence]) -> list[dict]:
        """Makes the features of windows of sentences; see `Featurizer`."""
        return [*self._featurizer.featurize(sentences)]

    def decode(
        self, encoded: list[Encoded], outputs: list[list[np.ndarray]]
    ) -> list[dict[str, Any]]:
        """Converts logits to predictions.

        Args:
            encoded: N examples.
            outputs: logits, float32 [S, C], of the windows of each.

        Returns:
            a dict for each example. `words` is a list of dicts of word, label
            and probability. For texts they also have start and end, in
            characters. If labels mark entities, `entities` is a list of dicts
            of entity, type, start, end and score. The score is the mean
            probability of its words. Without a text, start and end count words.
        """
        return [
            self._prediction(x, logits) for x, logits in zip(encoded, outputs)
        ]

    def answers(
        self, encoded: list[Encoded], outputs: list[list[np.ndarray]]
    ) -> list[Answer]:
        """Predicts the words of all examples; see `decode`."""
        found = []
        for (*_, (_, rows, *_)), logits in zip(encoded, outputs):
            found += self.read_answers(rows, logits)
        return found

    def _prediction(self, encoded: Encoded, logits: list[np.ndarray]) -> dict:
        sentence, _, spans, text = encoded.details
        answers = self.answers([encoded], [logits])
        (labels,) = self.by_sentence([sentence], (x[0] for x in answers))
        listed: list[dict[str, Any]] = [
            {"word": word, "label": label, "probability": probability}
            for word, label, (*_, probability) in zip(
                sentence.words, labels, answers
            )
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

    def read_answers(
        self, rows: list[dict], outputs: Iterable[np.ndarray]
    ) -> Iterator[Answer]:
        """Yields the prediction for each word.

        Args:
            rows: the features of all windows.
            outputs: the logits of each window, float32 [S, C].
        """
        for row, output in zip(rows, outputs):
            # A word is predicted in one window only, at its first token.
            positions = np.flatnonzero(row[features.LABEL_WEIGHTS])
            logits = output[positions].astype(np.float64)
            logs = log_softmax(logits)
            gold = np.array(row[features.LABEL_IDS])[positions]
            losses = -np.take_along_axis(logs, gold[:, None], -1)[:, 0]
            best = np.exp(logs.max(-1))
            for i, loss, probability in zip(logits.argmax(-1), losses, best):
                yield self._labels[i], float(loss), float(probability)

    def by_sentence(
        self, sentences: list[conll.Sentence], labels: Iterable[str]
    ) -> list[list[str]]:
        """Groups labels by sentence; entity labels become valid BIO."""
        labels = iter(labels)
        groups = [[*itertools.islice(labels, len(x.words))] for x in sentences]
        if self.is_entities:
            return [entities.to_bio(group) for group in groups]
        return groups
