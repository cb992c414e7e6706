"""A fine-tuned question answering model as one SavedModel.

    question, context -> windows -> network -> starts and ends -> spans
        -> n-best -> answer, probability, characters, odds of no answer

The SavedModel needs TensorFlow and TensorFlow Text, and nothing of this
project. It computes what `tasks.squad.windows` and `tasks.squad.answers`
compute, for many questions at once: their spans follow one another.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from data import features
from modeling import task_models
from modeling.config import BertConfig
from serving import graphs

QUESTION, CONTEXT = "question", "context"
ANSWER, PROBABILITY, NULL_ODDS = "answer", "probability", "null_odds"
START, END = "start", "end"

_AT_ONCE = 32  # windows that the network sees together
_NO_SPAN = 1e6  # odds of no answer where there is no span


@dataclasses.dataclass(frozen=True)
class Settings:
    """What the model is made of besides its weights.

    Attributes:
        config: sizes of the network.
        vocab_file: the vocabulary, which becomes an asset.
        do_lower_case: the casing of the text.
        strip_accents: whether its accents are stripped; None: likewise.
        max_seq_length, doc_stride, max_query_length: how windows are cut.
        n_best_size: starts and ends of a window, and entries of an n-best.
        max_answer_length: pieces of an answer at most.
        null_threshold: with greater odds there is no answer; None: there
            always is one, as in SQuAD 1.1.
    """

    config: BertConfig
    vocab_file: str
    do_lower_case: bool
    strip_accents: bool | None
    max_seq_length: int
    doc_stride: int
    max_query_length: int
    n_best_size: int
    max_answer_length: int
    null_threshold: float | None


class _Paragraphs(NamedTuple):
    """Questions and their contexts; B of them.

    questions: int32 [B, (pieces)].
    pieces: int32 [B, (pieces)] of the contexts.
    starts, limits: int64 [pieces], the first byte of each, and the one
        behind its last.
    room, stride, windows: int64 [B], see `tasks.squad.windows.cut`.
    """

    questions: tf.RaggedTensor
    pieces: tf.RaggedTensor
    starts: tf.Tensor
    limits: tf.Tensor
    room: tf.Tensor
    stride: tf.Tensor
    windows: tf.Tensor


class _Windows(NamedTuple):
    """Windows of all questions; W of them.

    of: int64 [W], their questions, ascending.
    numbers: int64 [W], from 0 in each question.
    starts, lengths: int64 [W], their pieces of the context.
    """

    of: tf.Tensor
    numbers: tf.Tensor
    starts: tf.Tensor
    lengths: tf.Tensor


class _Best(NamedTuple):
    """The best places of windows, and what `[CLS]` scores.

    start_places, end_places: int32 [W, n].
    start_logits, end_logits: float64 [W, n].
    null: float64 [W].
    """

    start_places: tf.Tensor
    end_places: tf.Tensor
    start_logits: tf.Tensor
    end_logits: tf.Tensor
    null: tf.Tensor


class _Spans(NamedTuple):
    """Spans of all questions, best first in each.

    of: int64 [M], their questions, ascending.
    scores: float64 [M].
    starts, limits: int64 [M], the first byte and the one behind the last.
    """

    of: tf.Tensor
    scores: tf.Tensor
    starts: tf.Tensor
    limits: tf.Tensor


class QuestionAnswering(tf.train.Checkpoint):
    """Questions and contexts to answers, as a SavedModel.

    Args:
        settings: what it is made of.
        weights: original name -> array, all of the network's.

    Attributes:
        serve: question and context, string [B] -> a dict:
            answer: string [B], a part of the context, or "".
            probability: float32 [B], among the n-best.
            start, end: int32 [B], `context[start:end]` is the answer, in
                characters.
            null_odds: float32 [B], score of no answer less that of the best.
        vocab_file: the vocabulary, as an asset.
        do_lower_case, strip_accents: its casing.
    """

    def __init__(self, settings: Settings, weights: dict[str, np.ndarray]):
        super().__init__()
        self._settings = settings
        self._model, self._tokenizer = graphs.equip(
            self,
            task_models.build_span_model(settings.config),
            weights,
            settings.vocab_file,
            settings.do_lower_case,
            settings.strip_accents,
        )
        strings = {
            name: tf.TensorSpec([None], tf.string, name)
            for name in (QUESTION, CONTEXT)
        }
        self.serve = tf.function(
            self._answer, autograph=False
        ).get_concrete_function(**strings)

    def _answer(self, question, context):
        paragraphs = self._tokenize(question, context)
        windows = _cut(paragraphs)
        best = self._best(paragraphs, windows)
        spans = _without_copies(
            self._spans(paragraphs, windows, best),
            context,
            self._settings.n_best_size**2,
        )
        null = tf.math.segment_min(best.null, windows.of)
        return self._choose(spans, null, context)

    def _tokenize(self, question, context) -> _Paragraphs:
        settings = self._settings
        questions = self._tokenizer.tokenize(question).merge_dims(1, 2)
        questions = questions[:, : settings.max_query_length]
        pieces, starts, limits = self._tokenizer.tokenize_with_offsets(context)
        pieces = pieces.merge_dims(1, 2)
        count = pieces.row_lengths()
        room = settings.max_seq_length - 3 - questions.row_lengths()
        stride = tf.minimum(room, settings.doc_stride)
        # A context without pieces has a window without any.
        more = tf.maximum(count - room, 0)
        return _Paragraphs(
            questions,
            pieces,
            starts.flat_values,
            limits.flat_values,
            room,
            stride,
            1 + -(-more // stride),
        )

    def _best(self, paragraphs: _Paragraphs, windows: _Windows) -> _Best:
        """Runs the network, some windows of like lengths at a time."""
        rows, heads = self._rows(paragraphs, windows)
        order = tf.argsort(rows.row_lengths(), stable=True)
        rows, heads = tf.gather(rows, order), tf.gather(heads, order)
        count, size = rows.nrows(), self._settings.n_best_size
        kinds = _Best(tf.int32, tf.int32, tf.float64, tf.float64, tf.float64)
        shapes = _Best(*[[None, size]] * 4, [None])
        arrays = [
            tf.TensorArray(
                kind, 0, dynamic_size=True, infer_shape=False, element_shape=x
            )
            for kind, x in zip(kinds, shapes)
        ]

        def run(i, arrays):
            some = slice(i * _AT_ONCE, (i + 1) * _AT_ONCE)
            found = self._run(rows[some], heads[some])
            return i + 1, [x.write(i, y) for x, y in zip(arrays, found)]

        _, arrays = tf.while_loop(
            lambda i, _: tf.cast(i * _AT_ONCE, count.dtype) < count,
            run,
            [tf.constant(0), arrays],
            parallel_iterations=1,
        )
        back = tf.math.invert_permutation(order)
        return _Best(*[tf.gather(array.concat(), back) for array in arrays])

    def _rows(self, paragraphs: _Paragraphs, windows: _Windows):
        """`[CLS] question [SEP] window [SEP]`, and the length up to there."""
        tokenizer = self._tokenizer
        questions = tf.gather(paragraphs.questions, windows.of)
        first = windows.starts + tf.gather(
            paragraphs.pieces.row_starts(), windows.of
        )
        places = tf.ragged.range(first, first + windows.lengths)
        column = tf.ones_like(windows.of, tf.int32)[:, tf.newaxis]
        rows = tf.concat(
            [
                column * tokenizer.cls_id,
                questions,
                column * tokenizer.sep_id,
                tf.gather(paragraphs.pieces.values, places),
                column * tokenizer.sep_id,
            ],
            axis=1,
        )
        return rows, questions.row_lengths() + 2

    def _run(self, rows: tf.RaggedTensor, heads: tf.Tensor) -> _Best:
        """The best starts and ends of rows of ids."""
        ids = rows.to_tensor(self._tokenizer.pad_id)
        size = tf.shape(ids)[1]
        mask = tf.sequence_mask(rows.row_lengths(), size, tf.int32)
        head = tf.sequence_mask(heads, size, tf.int32)
        outputs = self._model.value(
            {
                features.INPUT_IDS: ids,
                features.INPUT_MASK: mask,
                features.SEGMENT_IDS: mask - head,
            },
            training=False,
        )
        logits = [outputs["start_logits"], outputs["end_logits"]]
        count = self._settings.n_best_size
        best = []
        for x in logits:
            x = tf.where(mask == 1, x, -np.inf)
            # So that short rows have enough places, too.
            x = tf.pad(x, [[0, 0], [0, count]], constant_values=-np.inf)
            best.append(tf.math.top_k(x, count))
        start, end = best
        null = [tf.cast(x[:, 0], tf.float64) for x in logits]
        return _Best(
            start.indices,
            end.indices,
            tf.cast(start.values, tf.float64),
            tf.cast(end.values, tf.float64),
            null[0] + null[1],
        )

    def _spans(
        self, paragraphs: _Paragraphs, windows: _Windows, best: _Best
    ) -> _Spans:
        """Pairs of starts and ends that can be answers, best first."""
        heads = tf.gather(paragraphs.questions.row_lengths(), windows.of) + 2
        column = (heads - windows.starts)[:, tf.newaxis]
        # Numbers of pieces of the context: [W, n].
        first = tf.cast(best.start_places, tf.int64) - column
        last = tf.cast(best.end_places, tf.int64) - column
        longest = self._settings.max_answer_length
        start, end = first[:, :, tf.newaxis], last[:, tf.newaxis, :]
        allowed = (end >= start) & (end - start < longest)
        own = _inside(first, windows) & _has_most_context(
            first, paragraphs, windows
        )
        allowed &= own[:, :, tf.newaxis]
        allowed &= _inside(last, windows)[:, tf.newaxis, :]
        scores = (
            best.start_logits[:, :, tf.newaxis]
            + best.end_logits[:, tf.newaxis, :]
        )
        found = tf.where(allowed)  # [M, 3]: window, start, end
        scores = tf.gather_nd(scores, found)
        of = tf.gather(windows.of, found[:, 0])
        base = tf.gather(paragraphs.pieces.row_starts(), of)
        # In each question by score; of equals the first in `found`.
        order = tf.argsort(scores, direction="DESCENDING", stable=True)
        order = tf.gather(order, tf.argsort(tf.gather(of, order), stable=True))
        spans = _Spans(
            of,
            scores,
            tf.gather(
                paragraphs.starts,
                base + tf.gather_nd(first, found[:, :2]),
            ),
            tf.gather(
                paragraphs.limits,
                base + tf.gather_nd(last, tf.gather(found, [0, 2], axis=1)),
            ),
        )
        return _take(spans, order)

    def _choose(self, spans: _Spans, null, context) -> dict[str, tf.Tensor]:
        """Probabilities of the n-best, and the best or no answer."""
        count, threshold = tf.size(null), self._settings.null_threshold
        with_null = threshold is not None
        rank = _ranks(spans.of)
        if with_null:  # no answer takes its place among them
            rank += tf.cast(
                tf.gather(null, spans.of) > spans.scores, rank.dtype
            )
        nbest = _take(spans, _places(rank < self._settings.n_best_size))
        best = _take(spans, _places(_ranks(spans.of) == 0))
        where = best.of[:, tf.newaxis]

        def spread(values, default):
            return tf.tensor_scatter_nd_update(default, where, values)

        nothing = tf.zeros(count, tf.int64)
        start = spread(best.starts, nothing)
        limit = spread(best.limits, nothing)
        exists = spread(tf.ones_like(best.of, tf.bool), nothing > 0)
        score = spread(best.scores, null)
        odds = tf.where(exists, null - score, _NO_SPAN)
        answered = exists
        if with_null:
            answered &= odds <= threshold
        counted = with_null | ~exists
        highest = tf.where(counted, tf.maximum(score, null), score)
        total = tf.math.unsorted_segment_sum(
            tf.exp(nbest.scores - tf.gather(highest, nbest.of)),
            nbest.of,
            count,
        )
        total += tf.where(counted, tf.exp(null - highest), 0.0)
        chosen = tf.where(answered, score, null)
        start = tf.where(answered, start, 0)
        limit = tf.where(answered, limit, 0)
        return {
            ANSWER: tf.strings.substr(context, start, limit - start),
            PROBABILITY: tf.cast(tf.exp(chosen - highest) / total, tf.float32),
            START: _characters(context, start),
            END: _characters(context, limit),
            NULL_ODDS: tf.cast(odds, tf.float32),
        }


def save(model: QuestionAnswering, folder: str) -> None:
    """Writes a SavedModel with the signature `serving_default`.

    Args:
        model: what is saved.
        folder: that does not exist yet.
    """
    signatures = {"serving_default": model.serve}
    tf.saved_model.save(model, folder, signatures=signatures)


def _cut(paragraphs: _Paragraphs) -> _Windows:
    """The windows of all questions."""
    numbers = tf.ragged.range(paragraphs.windows)
    of = numbers.value_rowids()
    starts = numbers.values * tf.gather(paragraphs.stride, of)
    count = tf.gather(paragraphs.pieces.row_lengths(), of)
    room = tf.gather(paragraphs.room, of)
    return _Windows(
        of, numbers.values, starts, tf.minimum(room, count - starts)
    )


def _inside(pieces: tf.Tensor, windows: _Windows) -> tf.Tensor:
    """Whether pieces of the context are in their windows; [W, n]."""
    starts, lengths = windows.starts, windows.lengths
    limits = (starts + lengths)[:, tf.newaxis]
    return (pieces >= starts[:, tf.newaxis]) & (pieces < limits)


def _has_most_context(
    pieces: tf.Tensor, paragraphs: _Paragraphs, windows: _Windows
) -> tf.Tensor:
    """Whether pieces have most context in their own window.

    See `tasks.squad.windows.max_context`. All windows but the last are as
    long; of these the best is one of the two that have the piece next to
    their middle.

    Args:
        pieces: int64 [W, n], numbers of pieces of the context.
    """

    def column(values):
        return tf.gather(values, windows.of)[:, tf.newaxis]

    room, stride = column(paragraphs.room), column(paragraphs.stride)
    final = column(paragraphs.windows) - 1

    def score(number):
        left = pieces - number * stride
        return tf.minimum(left, room - 1 - left)

    lowest = tf.maximum(-((room - 1 - pieces) // stride), 0)
    highest = tf.minimum(pieces // stride, final - 1)
    middle = (2 * pieces - room + 1) // (2 * stride)
    owner = tf.maximum(lowest, tf.minimum(middle, highest))
    above = tf.minimum(owner + 1, highest)
    owner = tf.where(score(above) > score(owner), above, owner)
    last_start = final * stride
    last_length = column(paragraphs.pieces.row_lengths()) - last_start
    left = pieces - last_start
    last_score = _weighed(tf.minimum(left, last_length - 1 - left), last_length)
    in_last = left >= 0
    better = last_score > _weighed(score(owner), room)
    owner = tf.where(in_last & (better | (lowest > highest)), final, owner)
    return owner == windows.numbers[:, tf.newaxis]


def _weighed(context: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
    """Context and 0.01 for each piece of the window, float64."""
    return tf.cast(context, tf.float64) + 0.01 * tf.cast(length, tf.float64)


def _without_copies(spans: _Spans, context, most: int) -> _Spans:
    """Keeps the first span of each text of a question.

    Args:
        spans: best first in each question.
        context: string [B].
        most: so many spans of a question are looked at.
    """
    spans = _take(spans, _places(_ranks(spans.of) < most))
    texts = tf.strings.substr(
        tf.gather(context, spans.of), spans.starts, spans.limits - spans.starts
    )
    keys = tf.strings.join([tf.strings.as_string(spans.of), texts], " ")
    values, numbers = tf.unique(keys, tf.int64)
    first = tf.math.unsorted_segment_min(
        tf.range(tf.size(keys, tf.int64)), numbers, tf.size(values, tf.int64)
    )
    return _take(spans, first)


def _ranks(of: tf.Tensor) -> tf.Tensor:
    """Place of each among those of its question: int64 [M] -> int64 [M]."""
    return tf.range(tf.size(of, tf.int64)) - tf.searchsorted(
        of, of, "left", tf.int64
    )


def _take(spans: _Spans, places: tf.Tensor) -> _Spans:
    return _Spans(*(tf.gather(field, places) for field in spans))


def _places(mask: tf.Tensor) -> tf.Tensor:
    """Where a mask is true: bool [N] -> int64 [...]."""
    return tf.squeeze(tf.where(mask), 1)


def _characters(context: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    """Characters of the first `count` bytes, int32 [B]."""
    return tf.strings.length(
        tf.strings.substr(context, tf.zeros_like(count), count), "UTF8_CHAR"
    )
