"""SavedModel that labels words, with its tokenizer.

    text -> words -> tokens -> windows -> network -> labels -> entities

It needs TensorFlow and TensorFlow Text, and no code of this project. Texts
may have any length.
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from bert.data import features
from bert.data.text import word_ops
from bert.modeling import task_models
from bert.modeling.formats import conversion
from bert.modeling.formats.model_folder import ModelFolder
from bert.serving import graphs
from bert.tasks.ner import entities, windows
from bert.tasks.ner.settings import Settings

TEXT = "text"


class Labeller(tf.train.Checkpoint):
    """Labels the words of texts, as a SavedModel.

    Args:
        source: sizes of the network, and tokenizer.
        settings: settings of the script: windows.
        labels: labels in the order of their ids.
        has_entities: whether the labels are `O`, `B-` and `I-` of types.
        weights: original name -> array, for all variables of the network.

    Attributes:
        serve: text, string [B] -> answers; splits off punctuation.
        words: the same, splitting at white space only.
        vocab_file: the vocabulary, as an asset.
        do_lower_case, strip_accents: casing of the tokenizer.

    Answers are a dict. With at most W words in a text, each is [B, W]:
        words, labels: string, padded with "".
        word_starts, word_ends: int64, characters of the text, padded with -1.
        probabilities: float32, of the labels, padded with 0.
    With entities, at most E in a text, there are also, each [B, E]:
        entities, types: string, padded with "".
        starts, ends: int64, characters of the text, padded with -1.
        scores: float32, mean probability of the labels, padded with 0.
    """

    def __init__(
        self,
        source: ModelFolder | conversion.Bert,
        settings: Settings,
        labels: list[str],
        has_entities: bool,
        weights: dict[str, np.ndarray],
    ):
        super().__init__()
        self._settings, self._has_entities = settings, has_entities
        self._labels = tuple(labels)
        self._types = [label.partition("-")[2] for label in labels]
        self._model, self._tokenizer = graphs.equip(
            self,
            task_models.build_token_classifier(source.config, len(labels)),
            weights,
            source.tokenizer,
        )
        text = {TEXT: tf.TensorSpec([None], tf.string)}
        self._splitters = [
            word_ops.WordSplitter(word_ops.classes_of_text()),
            word_ops.WordSplitter(word_ops.classes_of_words()),
        ]
        self.serve, self.words = (
            graphs.signature(self._answer_function(splitter), text)
            for splitter in self._splitters
        )

    def _answer_function(self, splitter: word_ops.WordSplitter) -> Callable:
        return lambda text: self._answer(splitter.split(text))

    def _answer(self, words: word_ops.Words) -> dict[str, tf.Tensor]:
        probabilities = tf.nn.softmax(self._logits(words))  # [all words, C]
        best = tf.argmax(probabilities, -1)
        labels = tf.gather(self._labels, best)
        if self._has_entities:  # valid BIO, as of `entities.to_bio`
            begins = self._begins(words, best)
            first, later = (
                [f"{p}-{x}" if x else entities.OUTSIDE for x in self._types]
                for p in "BI"
            )
            labels = tf.where(
                begins, tf.gather(first, best), tf.gather(later, best)
            )
        score = tf.reduce_max(probabilities, -1)
        starts, limits = words.starts, words.limits
        strings = word_ops.strings_of(words.codes, starts, limits)

        # Characters count from the start of each text, not of the batch.
        text = tf.RaggedTensor.from_row_splits(starts, words.row_splits)
        base = tf.gather(words.text_splits, text.value_rowids())
        answer = {
            "words": (strings, ""),
            "labels": (labels, ""),
            "word_starts": (starts - base, -1),
            "word_ends": (limits - base, -1),
            "probabilities": (score, 0),
        }
        answer = _padded(answer, words.row_splits)
        if self._has_entities:
            answer |= self._entities(words, best, begins, score, base)
        return answer

    def _logits(self, words: word_ops.Words) -> tf.Tensor:
        """Logits of each word, in the window of its label, float32 [W, C]."""
        settings, tokenizer = self._settings, self._tokenizer
        max_seq_length = settings.finetuning.max_seq_length
        size = max_seq_length - 2
        stride = settings.doc_stride or windows.default_stride(size)
        tokens = tokenizer.tokenize(
            word_ops.strings_of(words.codes, words.starts, words.limits)
        ).merge_dims(1, 2)
        # As in training: a word has at least one token, and fits into a window.
        none = tf.cast(tokens.row_lengths() == 0, tf.int64)
        unknown = tf.fill([tf.reduce_sum(none)], tokenizer.unk_id)
        unknown = tf.RaggedTensor.from_row_lengths(unknown, none)
        tokens = tf.concat([tokens, unknown], 1)
        tokens = tokens[:, : windows.longest_word(size, stride)]

        # The tokens of all texts are one row; a window is a range of it.
        lengths = tokens.row_lengths()
        before = tf.concat([[0], tf.cumsum(lengths)], 0)
        found = word_ops.windows(lengths, words.row_splits, size, stride)
        indices = tf.ragged.range(
            tf.gather(before, found.starts), tf.gather(before, found.limits)
        )
        inputs = graphs.pack(
            tokenizer,
            [indices.with_values(tf.gather(tokens.values, indices.values))],
            max_seq_length,
        )
        inputs = graphs.trim(inputs)
        length = tf.shape(inputs[features.INPUT_IDS])[1]
        logits = graphs.by_length(
            lambda some: self._model.value(some, training=False)["logits"],
            inputs,
            [length, len(self._labels)],
        )

        # Each word once, at its first token; `[CLS]` moves it by 1.
        window = tf.ragged.range(found.firsts, found.lasts).value_rowids()
        starts = tf.gather(tf.gather(before, found.starts), window)
        positions = before[:-1] - starts + 1
        return tf.gather_nd(logits, tf.stack([window, positions], -1))

    def _begins(self, words: word_ops.Words, best: tf.Tensor) -> tf.Tensor:
        """Whether an entity begins at each word, bool [W]."""
        kind = tf.gather(self._types, best)
        text = tf.RaggedTensor.from_row_splits(kind, words.row_splits)
        text = text.value_rowids()

        # An entity goes on in the next word of its type, but not at a B-.
        same = (kind[1:] == kind[:-1]) & (text[1:] == text[:-1])
        begins = [label.startswith("B-") for label in self._labels]
        same &= ~tf.gather(begins, best[1:])
        inside = kind != ""
        return inside & ~tf.concat([tf.zeros_like(inside[:1]), same], 0)

    def _entities(
        self,
        words: word_ops.Words,
        best: tf.Tensor,
        begins: tf.Tensor,
        score: tf.Tensor,
        base: tf.Tensor,
    ) -> dict[str, tf.Tensor]:
        """Finds the entities of BIO labels, as `entities.find` does."""
        inside = tf.gather([x != "" for x in self._types], best)

        # Each word inside has the number of its entity.
        number = tf.cumsum(tf.cast(begins, tf.int64)) - 1
        number = tf.boolean_mask(number, inside)
        first = tf.squeeze(tf.where(begins), 1)
        starts = tf.gather(words.starts, first)
        limits = tf.math.segment_max(
            tf.boolean_mask(words.limits, inside), number
        )

        # An entity belongs to the text of its first word.
        splits = tf.searchsorted(first, words.row_splits, out_type=tf.int64)
        base = tf.gather(base, first)
        scores = tf.math.segment_mean(tf.boolean_mask(score, inside), number)
        strings = word_ops.strings_of(words.codes, starts, limits)
        types = tf.gather(self._types, tf.gather(best, first))
        found = {
            "entities": (strings, ""),
            "types": (types, ""),
            "starts": (starts - base, -1),
            "ends": (limits - base, -1),
            "scores": (scores, 0),
        }
        return _padded(found, splits)


def _padded(flat: dict, row_splits: tf.Tensor) -> dict[str, tf.Tensor]:
    """Pads (values of all texts, filler) to [B, longest] tensors."""
    return {
        name: tf.RaggedTensor.from_row_splits(values, row_splits).to_tensor(
            filler
        )
        for name, (values, filler) in flat.items()
    }
