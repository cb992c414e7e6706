"""A fine-tuned classifier and its tokenizer as one SavedModel.

    one or two texts -> ids -> network -> label, probabilities, label names

The SavedModel needs only TensorFlow and TensorFlow Text. Texts are packed
into rows, so that there is almost no padding.
"""

import numpy as np
import tensorflow as tf

from bert.data import features
from bert.data.label_kinds import CLASSES, MULTI_LABEL, Labels
from bert.data.sequences import FIRST_TOKENS, MAX, LongTexts
from bert.modeling import task_models
from bert.modeling.formats import conversion
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.precision import stored_in
from bert.serving import graphs, shared_rows
from bert.tasks.classification.settings import Settings

TEXT, TEXT_B = "text", "text_b"
LABEL, PROBABILITIES = "label", "probabilities"
LABEL_NAMES, VALUE = "label_names", "value"


class Classifier(tf.train.Checkpoint):
    """Text to labels, as a SavedModel.

    Args:
        source: config of the encoder, and tokenizer.
        settings: the settings of the script: length, precision.
        labels: the labels of the task.
        has_pairs: whether an example has two texts.
        weights: original name -> array, for all variables of the network.
        long_texts: what is read of longer texts.

    Attributes:
        serve: text, string [B] (and text_b, string [B]) -> outputs.
        count_tokens: text, and text_b -> `graphs.lengths_before_packing`;
            missing where nothing is truncated.
        tokens: the encoder's inputs, int32 [B, S] -> outputs.
        examples: serialized records, string [B] -> outputs.
        vocab_file: the vocabulary, as an asset.
        do_lower_case, strip_accents: the casing of the vocabulary.

    Outputs are a dict: label, string [B], "" if it is too improbable;
    probabilities, float32 [B, C]; label_names, string [B, C]. For MULTI_LABEL,
    `label` is string [B, C]: the labels with a probability of at least one
    half, or with a logit of at least their cut, padded with "". For
    REGRESSION, the only output is
    `value`, float32 [B].
    """

    def __init__(
        self,
        source: ModelFolder | conversion.Bert,
        settings: Settings,
        labels: Labels,
        has_pairs: bool,
        weights: dict[str, np.ndarray],
        long_texts: LongTexts = FIRST_TOKENS,
    ):
        super().__init__()
        self._max_seq_length = settings.finetuning.max_seq_length
        self._labels, self._long_texts = labels, long_texts
        long_texts.check(has_pairs)
        with stored_in(settings.export_precision):
            model = task_models.build_classifier(
                source.config, labels.size, packed=True
            )
        self._model, self._tokenizer = graphs.equip(
            self,
            model,
            weights,
            source.tokenizer,
        )

        # One function for each form of input, all with the same weights.
        texts = (TEXT, TEXT_B) if has_pairs else (TEXT,)
        specs = {name: tf.TensorSpec([None], tf.string) for name in texts}
        self.serve = graphs.signature(
            lambda **strings: self._answer_texts(
                [strings[name] for name in texts]
            ),
            specs,
        )

        # Windows read all tokens, so nobody counts those that are cut.
        if not long_texts.pool:
            self.count_tokens = graphs.signature(
                lambda **strings: self._count(
                    [strings[name] for name in texts]
                ),
                specs,
            )

        self.tokens = graphs.signature(
            lambda **inputs: self._answer(inputs),
            {
                name: tf.TensorSpec([None, None], tf.int32)
                for name in features.ENCODER_INPUTS
            },
        )
        self.examples = graphs.signature(
            lambda examples: self._answer(self._parse(examples)),
            {"examples": tf.TensorSpec([None], tf.string)},
        )

    def _segments(self, strings: list[tf.Tensor]) -> list[tf.RaggedTensor]:
        return [self._tokenizer.tokenize(x).merge_dims(1, 2) for x in strings]

    def _count(self, strings: list[tf.Tensor]) -> dict[str, tf.Tensor]:
        """Counts the tokens of texts before truncation."""
        segments = self._segments(strings)
        return graphs.lengths_before_packing(segments, self._max_seq_length)

    def _answer_texts(self, strings: list[tf.Tensor]) -> dict[str, tf.Tensor]:
        """Answers texts, truncated or in windows."""
        segments = self._segments(strings)
        if not self._long_texts.pool:
            return self._answer(self._pack(segments))

        # All windows of all texts share rows, as short texts do.
        (tokens,) = segments
        counts = tokens.row_lengths()
        size = self._max_seq_length - 2
        windows = graphs.cut(
            counts,
            tf.fill(tf.shape(counts), tf.constant(size, tf.int64)),
            tf.fill(
                tf.shape(counts), tf.constant(self._long_texts.stride, tf.int64)
            ),
        )
        logits = self._logits(self._pack([windows.tokens(tokens)]))
        pool = tf.math.segment_mean
        if self._long_texts.pool == MAX:
            pool = tf.math.segment_max
        return self._answers_of(pool(logits, windows.of))

    def _pack(self, segments: list[tf.RaggedTensor]) -> dict[str, tf.Tensor]:
        """Converts tokens of texts to the encoder's inputs."""
        tokenizer = self._tokenizer

        def pack(some):
            return graphs.pack(
                tokenizer, some, self._max_seq_length, self._long_texts.truncate
            )

        packed = pack(segments)
        if len(segments) == 2:  # one [SEP] where the second text is empty
            empty = segments[1].row_lengths() == 0
            single = pack(segments[:1])
            packed = {
                name: tf.where(empty[:, tf.newaxis], single[name], x)
                for name, x in packed.items()
            }
        return packed

    def _parse(self, examples: tf.Tensor) -> dict[str, tf.Tensor]:
        """Parses records to the encoder's inputs."""
        parsed = tf.io.parse_example(
            examples,
            {
                name: tf.io.RaggedFeature(tf.int64, row_splits_dtype=tf.int64)
                for name in features.ENCODER_INPUTS
            },
        )
        return {
            name: tf.cast(values.to_tensor(), tf.int32)
            for name, values in parsed.items()
        }

    def _logits(self, inputs: dict[str, tf.Tensor]) -> tf.Tensor:
        """Logits of sequences, float32 [B, C]."""

        def logits_of(rows):
            return self._model.value(rows, training=False)["logits"]

        return shared_rows.logits(logits_of, inputs, self._labels.size)

    def _decide(self, logits: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Logits for the predictions and for the probabilities, [B, C].

        The same as in `label_kinds`, in the graph.
        """
        decision, shifted = self._labels.decision, logits
        if decision.log_weights:
            shifted = logits - tf.constant(decision.log_weights, tf.float32)
        margins = shifted
        if decision.cuts:
            margins = logits - tf.constant(decision.cuts, tf.float32)
        return margins, shifted / decision.temperature

    def _answer(self, inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
        return self._answers_of(self._logits(inputs))

    def _answers_of(self, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        labels = self._labels
        names = tf.constant(labels.names, tf.string)
        margins, scaled = self._decide(logits)
        if labels.kind == CLASSES:
            probabilities = tf.nn.softmax(scaled)
            answer = tf.argmax(margins, -1)
            label = tf.gather(names, answer)
            if limit := labels.decision.unknown_below:
                chance = tf.gather(probabilities, answer, batch_dims=1)
                label = tf.where(chance < limit, "", label)
        elif labels.kind == MULTI_LABEL:
            probabilities = tf.sigmoid(scaled)

            # A probability of one half is a logit of 0.
            chosen = tf.RaggedTensor.from_row_lengths(
                tf.gather(names, tf.where(margins >= 0)[:, 1]),
                tf.reduce_sum(tf.cast(margins >= 0, tf.int64), -1),
            )
            label = chosen.to_tensor(shape=[None, labels.size])
        else:
            return {VALUE: logits[:, 0]}

        # The names in each row: a client needs no other file to read it.
        size = tf.shape(logits)[0]
        return {
            LABEL: label,
            PROBABILITIES: probabilities,
            LABEL_NAMES: tf.tile(names[tf.newaxis], [size, 1]),
        }
