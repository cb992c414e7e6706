"""A fine-tuned question answering model as one SavedModel.

    question, context -> windows -> network -> starts and ends -> spans
        -> n-best -> answer, probability, characters, odds of no answer

The SavedModel needs only TensorFlow and TensorFlow Text. It computes the same
as `tasks.squad.windows` and `tasks.squad.answers`, but for a batch of
questions, whose spans are concatenated.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert.data import features
from bert.modeling import task_models
from bert.modeling.formats import conversion
from bert.modeling.formats.model_folder import ModelFolder
from bert.serving import graphs
from bert.tasks.squad.answers import NO_SPAN
from bert.tasks.squad.settings import Settings

QUESTION, CONTEXT = "question", "context"
ANSWER, PROBABILITY, NULL_ODDS = "answer", "probability", "null_odds"
START, END = "start", "end"


class _Paragraphs(NamedTuple):
    """B questions and their contexts.

    questions: int32 [B, (tokens)], token ids.
    tokens: int32 [B, (tokens)], token ids of the contexts.
    starts, limits: int64 [tokens], first byte of each token of the contexts,
        and the byte after its last.
    size, stride: int64 [B], see `data.sequences.cut`.
    windows: int64 [B], number of windows.
    """

    questions: tf.RaggedTensor
    tokens: tf.RaggedTensor
    starts: tf.Tensor
    limits: tf.Tensor
    size: tf.Tensor
    stride: tf.Tensor
    windows: tf.Tensor


class _Spans(NamedTuple):
    """Spans of all questions, best first in each.

    of: int64 [M], index of the question, ascending.
    scores: float64 [M], sum of both logits.
    starts, limits: int64 [M], the first byte and the byte after the last.
    """

    of: tf.Tensor
    scores: tf.Tensor
    starts: tf.Tensor
    limits: tf.Tensor


class QuestionAnswering(tf.train.Checkpoint):
    """Questions and contexts to answers, as a SavedModel.

    Args:
        source: config of the encoder, and tokenizer.
        settings: the settings of the script; `n_best_size` is also the number
            of starts and of ends of a window.
        null_threshold: there is no answer if the odds of none are greater; of
            no effect without `version_2_with_negative`.
        weights: original name -> array, for all variables of the network.

    Attributes:
        serve: question and context, string [B] -> a dict:
            answer: string [B], a part of the context, or "".
            probability: float32 [B], softmax over the n-best list.
            start, end: int32 [B], characters: `context[start:end]` is the
                answer.
            null_odds: float32 [B], score of no answer minus that of the best
                answer.
        vocab_file: the vocabulary, as an asset.
        do_lower_case, strip_accents: the casing of the vocabulary.
    """

    def __init__(
        self,
        source: ModelFolder | conversion.Bert,
        settings: Settings,
        null_threshold: float,
        weights: dict[str, np.ndarray],
    ):
        super().__init__()
        self._settings, self._null_threshold = settings, null_threshold
        self._model, self._tokenizer = graphs.equip(
            self,
            task_models.build_span_model(source.config),
            weights,
            source.tokenizer,
        )
        string = tf.TensorSpec([None], tf.string)
        self.serve = graphs.signature(
            self._answer, {QUESTION: string, CONTEXT: string}
        )

    def _answer(self, question, context):
        paragraphs = self._tokenize(question, context)
        windows = graphs.cut(
            paragraphs.tokens.row_lengths(), paragraphs.size, paragraphs.stride
        )
        logits, mask = self._logits(paragraphs, windows)
        spans = _without_duplicates(
            self._spans(paragraphs, windows, logits, mask),
            context,
            self._settings.n_best_size**2,
        )

        # No answer is the span from `[CLS]` to `[CLS]`.
        null = tf.reduce_sum(tf.cast(logits[:, 0], tf.float64), -1)
        null = tf.math.segment_min(null, windows.of)
        return self._choose(spans, null, context)

    def _tokenize(self, question, context) -> _Paragraphs:
        settings = self._settings
        questions = self._tokenizer.tokenize(question).merge_dims(1, 2)
        questions = questions[:, : settings.max_query_length]
        tokens, starts, limits = self._tokenizer.tokenize_with_offsets(context)
        tokens = tokens.merge_dims(1, 2)
        count = tokens.row_lengths()

        # `[CLS]` and two `[SEP]`: the context gets what the question leaves.
        size = settings.finetuning.max_seq_length - 3 - questions.row_lengths()
        stride = tf.minimum(size, settings.doc_stride)
        # A context without tokens has one empty window.
        more = tf.maximum(count - size, 0)
        return _Paragraphs(
            questions,
            tokens,
            starts.flat_values,
            limits.flat_values,
            size,
            stride,
            1 + -(-more // stride),
        )

    def _logits(
        self, paragraphs: _Paragraphs, windows: graphs.Windows
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Runs the network on the windows.

        Returns:
            float32 [W, S, 2], logits of starts and ends; int32 [W, S], the
            input mask.
        """
        segments = [
            tf.gather(paragraphs.questions, windows.of),
            windows.tokens(paragraphs.tokens),
        ]
        inputs = graphs.trim(
            graphs.pack(
                self._tokenizer,
                segments,
                self._settings.finetuning.max_seq_length,
            )
        )

        def run(some):
            outputs = self._model.value(some, training=False)
            return tf.stack([outputs["start_logits"], outputs["end_logits"]], 2)

        mask = inputs[features.INPUT_MASK]
        return graphs.by_length(run, inputs, [tf.shape(mask)[1], 2]), mask

    def _spans(
        self,
        paragraphs: _Paragraphs,
        windows: graphs.Windows,
        logits: tf.Tensor,
        mask: tf.Tensor,
    ) -> _Spans:
        """Valid pairs of starts and ends, best first."""
        # So that short sequences have enough positions, too.
        count = self._settings.n_best_size
        logits = tf.where(mask[:, :, tf.newaxis] == 1, logits, -np.inf)
        logits = tf.pad(
            logits, [[0, 0], [0, count], [0, 0]], constant_values=-np.inf
        )
        best = tf.math.top_k(tf.transpose(logits, [0, 2, 1]), count)
        scores = tf.cast(best.values, tf.float64)  # [W, 2, n]

        # Indices of tokens of the context: [W, n].
        heads = tf.gather(paragraphs.questions.row_lengths(), windows.of) + 2
        column = (heads - windows.starts)[:, tf.newaxis]
        first = tf.cast(best.indices[:, 0], tf.int64) - column
        last = tf.cast(best.indices[:, 1], tf.int64) - column

        # Every start with every end: [W, n, n].
        longest = self._settings.max_answer_length
        start, end = first[:, :, tf.newaxis], last[:, tf.newaxis, :]
        allowed = (end >= start) & (end - start < longest)

        # A start counts only in the window where it has most context.
        own = _inside(first, windows) & _has_most_context(
            first, paragraphs, windows
        )
        allowed &= own[:, :, tf.newaxis]
        allowed &= _inside(last, windows)[:, tf.newaxis, :]

        scores = scores[:, 0, :, tf.newaxis] + scores[:, 1, tf.newaxis]
        pairs = tf.where(allowed)  # [M, 3]: window, start, end
        scores = tf.gather_nd(scores, pairs)
        of = tf.gather(windows.of, pairs[:, 0])
        base = tf.gather(paragraphs.tokens.row_starts(), of)

        # In each question by score; ties in the order of `pairs`.
        order = tf.argsort(scores, direction="DESCENDING", stable=True)
        order = tf.gather(order, tf.argsort(tf.gather(of, order), stable=True))

        # Positions in the context, of all pairs.
        spans = _Spans(
            of,
            scores,
            tf.gather(
                paragraphs.starts,
                base + tf.gather_nd(first, pairs[:, :2]),
            ),
            tf.gather(
                paragraphs.limits,
                base + tf.gather_nd(last, tf.gather(pairs, [0, 2], axis=1)),
            ),
        )
        return _take(spans, order)

    def _choose(self, spans: _Spans, null, context) -> dict[str, tf.Tensor]:
        """Probabilities of the n-best, and the best or no answer."""
        count = tf.size(null)
        with_null = self._settings.version_2_with_negative
        rank = _ranks(spans.of)

        if with_null:  # no answer is one of the n-best
            rank += tf.cast(
                tf.gather(null, spans.of) > spans.scores, rank.dtype
            )
        nbest = _take(spans, _indices(rank < self._settings.n_best_size))
        best = _take(spans, _indices(_ranks(spans.of) == 0))
        where = best.of[:, tf.newaxis]

        def spread(values, default):
            return tf.tensor_scatter_nd_update(default, where, values)

        # A question without a span keeps the default.
        nothing = tf.zeros(count, tf.int64)
        start = spread(best.starts, nothing)
        limit = spread(best.limits, nothing)
        exists = spread(tf.ones_like(best.of, tf.bool), nothing > 0)
        score = spread(best.scores, null)
        odds = tf.where(exists, null - score, NO_SPAN)

        # In version 1.1 every question that has a span is answered.
        answered = exists
        if with_null:
            answered &= odds <= self._null_threshold

        # No answer has a share of the softmax only where it can be one.
        counted = with_null | ~exists
        highest = tf.where(counted, tf.maximum(score, null), score)
        total = tf.math.unsorted_segment_sum(
            tf.exp(nbest.scores - tf.gather(highest, nbest.of)),
            nbest.of,
            count,
        )
        total += tf.where(counted, tf.exp(null - highest), 0.0)

        # The empty answer begins and ends at 0.
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


def _inside(tokens: tf.Tensor, windows: graphs.Windows) -> tf.Tensor:
    """Whether tokens of the context are in their windows; bool [W, n]."""
    starts, lengths = windows.starts, windows.lengths
    limits = (starts + lengths)[:, tf.newaxis]
    return (tokens >= starts[:, tf.newaxis]) & (tokens < limits)


def _has_most_context(
    tokens: tf.Tensor, paragraphs: _Paragraphs, windows: graphs.Windows
) -> tf.Tensor:
    """Whether tokens have their maximum context in their own window.

    See `tasks.squad.windows.max_context`. All windows but the last have the
    same length; the best of these is one of the two whose middle is closest to
    the token.

    Args:
        tokens: int64 [W, n], indices of tokens of the context.
        paragraphs: the questions and contexts.
        windows: the windows.

    Returns:
        bool [W, n].
    """

    def column(values):
        return tf.gather(values, windows.of)[:, tf.newaxis]

    size, stride = column(paragraphs.size), column(paragraphs.stride)
    final = column(paragraphs.windows) - 1

    def score(number):
        left = tokens - number * stride
        return tf.minimum(left, size - 1 - left)

    # The first and the last window with the token, but for the final one.
    lowest = tf.maximum(-((size - 1 - tokens) // stride), 0)
    highest = tf.minimum(tokens // stride, final - 1)

    # Of these, the two whose middles are closest to it.
    middle = (2 * tokens - size + 1) // (2 * stride)
    owner = tf.maximum(lowest, tf.minimum(middle, highest))
    above = tf.minimum(owner + 1, highest)
    owner = tf.where(score(above) > score(owner), above, owner)

    # The final window may be shorter, so its score is computed apart.
    last_start = final * stride
    last_length = column(paragraphs.tokens.row_lengths()) - last_start
    left = tokens - last_start
    last_score = _weighed(tf.minimum(left, last_length - 1 - left), last_length)
    in_last = left >= 0
    better = last_score > _weighed(score(owner), size)
    owner = tf.where(in_last & (better | (lowest > highest)), final, owner)
    return owner == windows.numbers[:, tf.newaxis]


def _weighed(context: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
    """Context plus 0.01 per token of the window, float64."""
    return tf.cast(context, tf.float64) + 0.01 * tf.cast(length, tf.float64)


def _without_duplicates(spans: _Spans, context, most: int) -> _Spans:
    """Keeps the best span of each distinct text of a question.

    Args:
        spans: the spans, best first in each question.
        context: string [B].
        most: maximum number of spans of a question to consider.
    """
    spans = _take(spans, _indices(_ranks(spans.of) < most))
    texts = tf.strings.substr(
        tf.gather(context, spans.of), spans.starts, spans.limits - spans.starts
    )

    # With its question: two questions may have the same answer.
    keys = tf.strings.join([tf.strings.as_string(spans.of), texts], " ")
    values, numbers = tf.unique(keys, tf.int64)

    # Spans are in the order of scores: the first copy is the best.
    first = tf.math.unsorted_segment_min(
        tf.range(tf.size(keys, tf.int64)), numbers, tf.size(values, tf.int64)
    )
    return _take(spans, first)


def _ranks(of: tf.Tensor) -> tf.Tensor:
    """Rank of each span in its question: int64 [M] -> int64 [M]."""
    return tf.range(tf.size(of, tf.int64)) - tf.searchsorted(
        of, of, "left", tf.int64
    )


def _take(spans: _Spans, indices: tf.Tensor) -> _Spans:
    return _Spans(*(tf.gather(field, indices) for field in spans))


def _indices(mask: tf.Tensor) -> tf.Tensor:
    """Indices at which a mask is true: bool [N] -> int64 [...]."""
    return tf.squeeze(tf.where(mask), 1)


def _characters(context: tf.Tensor, count: tf.Tensor) -> tf.Tensor:
    """Number of characters in the first `count` bytes, int32 [B]."""
    return tf.strings.length(
        tf.strings.substr(context, tf.zeros_like(count), count), "UTF8_CHAR"
    )
