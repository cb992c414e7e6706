"""A network that labels words, and its tokenizer, as one SavedModel.

    text -> words -> pieces -> windows -> network -> labels -> entities

What is saved needs TensorFlow and TensorFlow Text, and nothing of this
project. Texts may be of any length.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from data import features
from data.text import word_ops
from modeling import task_models
from modeling.config import BertConfig
from serving import graphs
from tasks.ner import entities, windows

TEXT = "text"


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a labeller is made of besides its weights.

    Attributes:
        config: sizes of the network.
        labels: in the order of their ids.
        has_entities: they are `O`, `B-` and `I-` of types.
        vocab_file: the vocabulary, which becomes an asset.
        do_lower_case: the casing of the text.
        strip_accents: whether its accents are stripped; None: likewise.
        max_seq_length: S of a window at most.
        stride: pieces from one window to the next; 0 for half of it.
    """

    config: BertConfig
    labels: list[str]
    has_entities: bool
    vocab_file: str
    do_lower_case: bool
    strip_accents: bool | None
    max_seq_length: int
    stride: int


class Labeller(tf.train.Checkpoint):
    """Text to labels of its words, as a SavedModel.

    Args:
        settings: what it is made of.
        weights: original name -> array, all of the network's.

    Attributes:
        serve: text, string [B] -> answers; punctuation is split off.
        words: the same for text that is split at white space already.
        vocab_file: the vocabulary, as an asset.
        do_lower_case, strip_accents: its casing.

    Answers are a dict. Of W words at most in a text, [B, W] each:
        words, labels: string, "" where a text has no more words.
        word_starts, word_ends: int64, characters of the text; -1.
        probabilities: float32, of the labels; 0.
    And, with entities, E at most in a text, [B, E] each:
        entities, types: string, "" where a text has no more of them.
        starts, ends: int64, characters of the text; -1.
        scores: float32, the mean probability of its labels; 0.
    """

    def __init__(self, settings: Settings, weights: dict[str, np.ndarray]):
        super().__init__()
        self._settings = settings
        self._model, self._tokenizer = graphs.equip(
            self,
            task_models.build_token_classifier(
                settings.config, len(settings.labels)
            ),
            weights,
            settings.vocab_file,
            settings.do_lower_case,
            settings.strip_accents,
        )
        text = {TEXT: tf.TensorSpec([None], tf.string)}
        self._splitters = [
            word_ops.WordSplitter(word_ops.classes_of_text()),
            word_ops.WordSplitter(word_ops.classes_of_words()),
        ]
        self.serve, self.words = (
            graphs.signature(self._answering(splitter), text)
            for splitter in self._splitters
        )

    def _answering(self, splitter: word_ops.WordSplitter) -> Callable:
        return lambda text: self._answer(splitter.split(text))

    def _answer(self, words: word_ops.Words) -> dict[str, tf.Tensor]:
        probabilities = tf.nn.softmax(self._logits(words))  # [all words, C]
        best = tf.argmax(probabilities, -1)
        score = tf.reduce_max(probabilities, -1)
        starts, limits = words.starts, words.limits
        strings = word_ops.strings_of(words.codes, starts, limits)
        text = tf.RaggedTensor.from_row_splits(starts, words.row_splits)
        base = tf.gather(words.text_splits, text.value_rowids())
        answer = {
            "words": (strings, ""),
            "labels": (tf.gather(self._settings.labels, best), ""),
            "word_starts": (starts - base, -1),
            "word_ends": (limits - base, -1),
            "probabilities": (score, 0),
        }
        answer = _padded(answer, words.row_splits)
        if self._settings.has_entities:
            answer |= self._entities(words, best, score, base)
        return answer

    def _logits(self, words: word_ops.Words) -> tf.Tensor:
        """Scores of each word where it stands best: float32 [W, C]."""
        settings, tokenizer = self._settings, self._tokenizer
        room = settings.max_seq_length - 2
        stride = settings.stride or windows.default_stride(room)
        pieces = tokenizer.tokenize(
            word_ops.strings_of(words.codes, words.starts, words.limits)
        ).merge_dims(1, 2)
        # As in training: a word has a piece, and few enough for a window.
        none = tf.cast(pieces.row_lengths() == 0, tf.int64)
        unknown = tf.fill([tf.reduce_sum(none)], tokenizer.unk_id)
        unknown = tf.RaggedTensor.from_row_lengths(unknown, none)
        pieces = tf.concat([pieces, unknown], 1)
        pieces = pieces[:, : windows.longest_word(room, stride)]
        lengths = pieces.row_lengths()
        before = tf.concat([[0], tf.cumsum(lengths)], 0)
        rows = word_ops.windows(lengths, words.row_splits, room, stride)
        places = tf.ragged.range(
            tf.gather(before, rows.starts), tf.gather(before, rows.limits)
        )
        inputs = graphs.pack(
            tokenizer,
            [places.with_values(tf.gather(pieces.values, places.values))],
            settings.max_seq_length,
        )
        inputs = graphs.trim(inputs)
        length = tf.shape(inputs[features.INPUT_IDS])[1]
        logits = graphs.by_length(
            lambda some: self._model.value(some, training=False)["logits"],
            inputs,
            [length, len(settings.labels)],
        )
        row = tf.ragged.range(rows.firsts, rows.lasts).value_rowids()
        in_row = before[:-1] - tf.gather(tf.gather(before, rows.starts), row)
        return tf.gather_nd(logits, tf.stack([row, in_row + 1], -1))

    def _entities(
        self,
        words: word_ops.Words,
        best: tf.Tensor,
        score: tf.Tensor,
        base: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """Entities of the labels, as `entities.find` finds them in BIO."""
        names = [label.partition("-") for label in self._settings.labels]
        types = sorted({x[2] for x in names if x[0] != entities.OUTSIDE})
        numbers = [types.index(x[2]) if x[2] else -1 for x in names]
        kind = tf.gather(numbers, best)
        text = tf.RaggedTensor.from_row_splits(kind, words.row_splits)
        text = text.value_rowids()
        same = (kind[1:] == kind[:-1]) & (text[1:] == text[:-1])
        same &= ~tf.gather([x[0] == "B" for x in names], best[1:])
        inside = kind >= 0
        begins = inside & ~tf.concat([tf.zeros_like(inside[:1]), same], 0)
        number = tf.cumsum(tf.cast(begins, tf.int64)) - 1
        number = tf.boolean_mask(number, inside)
        first = tf.squeeze(tf.where(begins), 1)
        starts = tf.gather(words.starts, first)
        limits = tf.math.segment_max(
            tf.boolean_mask(words.limits, inside), number
        )
        splits = tf.searchsorted(first, words.row_splits, out_type=tf.int64)
        base = tf.gather(base, first)
        scores = tf.math.segment_mean(tf.boolean_mask(score, inside), number)
        strings = word_ops.strings_of(words.codes, starts, limits)
        types = tf.gather([*types, ""], tf.gather(kind, first))
        found = {
            "entities": (strings, ""),
            "types": (types, ""),
            "starts": (starts - base, -1),
            "ends": (limits - base, -1),
            "scores": (scores, 0),
        }
        return _padded(found, splits)


def save(labeller: Labeller, folder: str) -> None:
    """Writes a SavedModel.

    Args:
        labeller: what is saved, with the signatures `serving_default` and
            `words`.
        folder: that does not exist yet.
    """
    tf.saved_model.save(
        labeller,
        folder,
        signatures={
            "serving_default": labeller.serve,
            "words": labeller.words,
        },
    )


def _padded(flat: dict, row_splits: tf.Tensor) -> dict[str, tf.Tensor]:
    """Values of all texts, and what fills up, to [B, longest] each."""
    return {
        name: tf.RaggedTensor.from_row_splits(values, row_splits).to_tensor(
            filler
        )
        for name, (values, filler) in flat.items()
    }
