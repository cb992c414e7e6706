"""Converts texts, labels and weights to batches of encoder inputs.

Encoded data is a tuple of columns. The first is a list of N rows, (ids,
segment ids) without padding. Labels and weights follow, each an array [N, ...]
or a list of N arrays, which are padded like the rows.
"""

import contextlib
import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf

from bert.common import processes
from bert.common.errors import UserError
from bert.data import batching, bucketing, feature_names, sequences
from bert.data.labels import CLASSES, MULTI_LABEL, Labels
from bert.data.sequences import FIRST_TOKENS
from bert.data.text.array_inputs import finite, strings
from bert.data.text.tokenizer import Tokenizer
from bert.models import label_encoder
from bert.tasks.classification.glue import TextExample
from bert.tasks.classification.task import TextClassification

INPUTS = dict.fromkeys(
    feature_names.ENCODER_INPUTS, tf.TensorSpec([None, None], tf.int32)
)


class TextBatches:
    """Converts texts, and optional labels and weights, to batches.

    Texts are a column of strings, a tuple of two columns for pairs, or a
    `tf.data.Dataset`. Batches of a dataset are texts, `(texts, labels)` or
    `(texts, labels, weights)`.

    Args:
        tokenizer: Tokenizer. The tokenizer of the encoder.
        max_length: int. Longest sequence in tokens; longer texts are
            truncated.
        labels: Labels. Kind and names of the labels.
        seed: int. Seed of the order of the texts.

    Attributes:
        long_texts: LongTexts. Handling of longer texts.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        max_length: int,
        labels: Labels,
        seed: int,
    ):
        self._tokenizer, self._max_length = tokenizer, max_length
        self._labels, self._seed = labels, seed
        self.long_texts = FIRST_TOKENS
        self._error: UserError | None = None  # of a text in a dataset

    def batches(
        self, x: tf.data.Dataset, y, weights, lengths: Sequence[int]
    ) -> tf.data.Dataset:
        """Returns a dataset of (inputs, labels, weights) for training.

        Args:
            x: tf.data.Dataset. Labelled texts, see the class.
            y, weights: None.
            lengths: sequence of int. Lengths of the batches, see `batch`.

        Raises:
            UserError: The dataset has no labels, or `y` or `weights` is given.
        """
        _check_alone(x, y, weights)
        decoded, has_weights = self._text_batches(x), len(x.element_spec) > 2

        def batches():
            for texts, *others in decoded():
                try:
                    examples = self._examples(texts, *others)
                except UserError as error:
                    self._error = error  # TensorFlow hides its type
                    raise
                yield batch(self.columns(examples, has_weights), lengths)

        signature = self._signature(len(x.element_spec))
        return dataset(batches, signature, int(x.cardinality()))

    def examples(self, x, y=None, weights=None) -> list[TextExample]:
        """Returns labelled examples.

        Args:
            x: column, tuple or tf.data.Dataset. The texts, see the class.
            y: column or None. The labels; None if `x` is a dataset.
            weights: column or None. Weights of the texts.

        Raises:
            UserError: A text, a label or a weight is invalid, or the texts or
                labels are missing.
        """
        if isinstance(x, tf.data.Dataset):
            _check_alone(x, y, weights)
            found = [
                example
                for texts, *others in self._text_batches(x)()
                for example in self._examples(texts, *others)
            ]
        elif y is None:
            raise UserError(
                f"y is None, x a {type(x).__name__}",
                expected="labels in y, or in a tf.data.Dataset as x",
            )
        else:
            found = self._examples(x, y, weights)
        if not found:
            raise UserError("no texts", expected="one or more")
        return found

    def _examples(self, x, y, weights=None) -> list[TextExample]:
        """Returns the examples of columns of texts, labels and weights."""
        a, b = _texts(x)
        labels = label_encoder.ids(y, self._labels)
        if self._labels.kind == MULTI_LABEL:
            labels = labels.astype(int)
        sizes, shares = [len(a), len(labels)], [1.0] * len(a)
        if weights is not None:
            shares = finite(weights, "sample_weight").tolist()
            sizes.append(len(shares))
        _check_sizes(sizes)
        return [
            TextExample(str(i), text, text_b, label, weight=weight)
            for i, (text, text_b, label, weight) in enumerate(
                zip(a, b, labels.tolist(), shares)
            )
        ]

    def columns(self, examples: list[TextExample], has_weights: bool) -> tuple:
        """Encodes labelled examples to columns, see the module.

        Args:
            examples: list of TextExample. The examples.
            has_weights: bool. Whether their weights are a column.
        """
        task = TextClassification(
            self._tokenizer,
            self._labels,
            self._max_length,
            self.long_texts,
            has_pairs=None,
        )
        rows = sequences.rows_of(task.records(examples))
        kind = np.int32 if self._labels.kind == CLASSES else np.float32
        labels = np.array([x.label for x in examples], kind)
        if not has_weights:
            return rows, labels
        return rows, labels, np.array([x.weight for x in examples], np.float32)

    def texts(self, x) -> tuple[list[str], list[str]]:
        """Returns first and second texts; a missing second text is "".

        Args:
            x: column, tuple or tf.data.Dataset. The texts, see the class.

        Raises:
            UserError: A text is invalid, or the columns differ in length.
        """
        if not isinstance(x, tf.data.Dataset):
            return _texts(x)
        first, second = [], []
        for texts, *_ in self._text_batches(x)():
            a, b = _texts(texts)
            first += a
            second += b
        return first, second

    def _text_batches(self, x: tf.data.Dataset) -> Callable:
        """Returns a function that yields the batches of a dataset.

        A batch is a tuple: a tuple of one or two columns of decoded texts,
        and labels and weights, if the dataset has them.

        Raises:
            UserError: The dataset does not have batches of strings.
        """
        is_tuple = isinstance(x.element_spec, tuple)
        spec = x.element_spec if is_tuple else (x.element_spec,)
        texts = spec[0] if isinstance(spec[0], tuple) else spec[:1]

        # A scalar is not a batch, and a number is not a text.
        if not all(
            isinstance(part, tf.TensorSpec) and part.shape.rank != 0
            for part in (*texts, *spec[1:])
        ) or any(part.dtype != tf.string for part in texts):
            raise UserError(
                f"a tf.data.Dataset of {x.element_spec!r:.90}",
                expected="batches of strings, or of (texts, labels)",
                fix="map it to them, and call .batch(32)",
            )

        def batches():
            for element in x.as_numpy_iterator():
                texts, *others = element if is_tuple else (element,)
                texts = texts if isinstance(texts, tuple) else (texts,)
                if others and others[0].dtype == object:  # names of labels
                    others[0] = _decoded(others[0])
                yield tuple(_decoded(column) for column in texts), *others

        return batches

    def _signature(self, size: int) -> tuple:
        """Returns the first `size` specs of inputs, labels and weights."""
        kind = self._labels.kind
        shape = [None, self._labels.size] if kind == MULTI_LABEL else [None]
        return (
            INPUTS,
            tf.TensorSpec(shape, tf.int32 if kind == CLASSES else tf.float32),
            tf.TensorSpec([None], tf.float32),
        )[:size]

    @contextlib.contextmanager
    def errors(self):
        """Replaces TensorFlow's error by the UserError that caused it."""
        try:
            yield
        except tf.errors.OpError:
            error, self._error = self._error, None
            if error is None:
                raise
            raise error from None


def split(examples: list, share: float) -> tuple[list, list]:
    """Splits examples into those for training and for validation.

    Args:
        examples: list. N examples.
        share: float. Fraction of the examples for validation, taken from the
            end.

    Raises:
        UserError: One of the parts would be empty.
    """
    count = len(examples)
    at = math.floor(count * (1.0 - share))
    if not 0 < at < count:
        raise UserError(
            f"validation_split={share} of {count} texts",
            expected="texts for training and for validation",
        )

    # As in Keras, the split is before any shuffling, so it is always the same.
    return examples[:at], examples[at:]


def _texts(x) -> tuple[list[str], list[str]]:
    """Returns first and second texts; a missing second text is "".

    Raises:
        UserError: A text is invalid, or the columns differ in length.
    """
    columns = x if isinstance(x, tuple) else (x,)
    if len(columns) not in (1, 2):
        raise UserError(
            f"{len(columns)} columns of texts", expected="one, or two"
        )

    fix = "pass one, or a tuple of two for pairs"
    a, *b = (strings(part, "texts", fix) for part in columns)
    _check_sizes([len(a), *map(len, b)])
    return a, b[0] if b else [""] * len(a)


def _check_alone(x: tf.data.Dataset, y, weights) -> None:
    """Rejects a dataset without labels, or with labels beside it."""
    spec = x.element_spec
    has_labels = isinstance(spec, tuple) and len(spec) > 1
    if not has_labels or y is not None or weights is not None:
        raise UserError(
            f"x is a tf.data.Dataset of {spec!r:.60}, y is {y!r:.60}",
            expected="one of batches of (texts, labels), or of (texts, labels, "
            "weights), alone",
        )


def _check_sizes(sizes: list[int]) -> None:
    """Rejects columns of different sizes."""
    if len(set(sizes)) > 1:
        raise UserError(
            f"{' and '.join(map(str, sizes))} rows",
            expected="as many labels as texts",
        )


def _decoded(texts: np.ndarray) -> np.ndarray:
    """Decodes an array of bytes to strings, in the same shape."""
    return np.vectorize(lambda x: x.decode(errors="replace"), "O")(texts)


def training_batches(
    columns: tuple,
    padded_lengths: Sequence[int],
    batch_size: int,
    seed: int,
    shuffle: bool = False,
) -> tf.data.Dataset:
    """Returns a dataset of the batches of an epoch.

    Shuffled batches are the same as in the scripts with this seed.

    Args:
        columns: tuple. See the module.
        padded_lengths: sequence of int. Lengths of the batches, see `batch`.
        batch_size: int. Number of rows per batch.
        seed: int. Seed of the order.
        shuffle: bool. Whether to shuffle before each epoch. Default: False.
    """
    bucketing.check_size(batch_size)
    lengths = np.array([len(ids) for ids, _ in columns[0]])
    count = len(lengths)
    size = min(batch_size, count)
    steps, epochs = math.ceil(count / size), itertools.count()

    def batches():
        order = np.split(np.arange(count), range(size, count, size))
        if shuffle:  # an endless order, which an epoch continues
            step = next(epochs) * steps
            order = batching.choose(count, lengths, size, seed, step)
        for chosen in itertools.islice(order, steps):
            yield batch(columns, padded_lengths, chosen)

    # Lists are padded to the length of a batch; arrays have a shape.
    signature = (
        INPUTS,
        *(
            tf.TensorSpec([None, None], column[0].dtype)
            if isinstance(column, list)
            else tf.TensorSpec([None, *column.shape[1:]], column.dtype)
            for column in columns[1:]
        ),
    )
    return dataset(batches, signature, steps)


def batch(
    columns: tuple,
    lengths: Sequence[int],
    chosen: np.ndarray | None = None,
) -> tuple:
    """Makes a batch of rows: the encoder's inputs, and the other columns.

    Args:
        columns: tuple. See the module.
        lengths: sequence of int. Allowed lengths of the batch, ascending.
        chosen: int [B] or None. Indices of the rows. Default: all rows.
    """
    processes.check_not_forked(processes.TENSORFLOW)
    chosen = range(len(columns[0])) if chosen is None else chosen
    rows = [columns[0][i] for i in chosen]
    longest = max(len(ids) for ids, _ in rows)
    length = next(x for x in lengths if x >= longest)

    def taken(column):
        if isinstance(column, list):
            parts = [column[i] for i in chosen]
            return sequences.pad_rows(parts, length, parts[0].dtype)
        return column[np.asarray(chosen)]

    inputs = bucketing.pad(rows, length)
    return inputs, *map(taken, columns[1:])


def dataset(batches: Callable, signature: tuple, steps: int) -> tf.data.Dataset:
    """Makes a dataset of the batches of a generator.

    Args:
        batches: callable. Called without arguments; returns an iterator.
        signature: tuple. TensorSpecs of a batch.
        steps: int. Number of batches; negative if it is unknown.
    """
    processes.check_not_forked(processes.TENSORFLOW)
    batched = tf.data.Dataset.from_generator(
        batches, output_signature=signature
    )

    # Keras cannot see the number of batches of a generator.
    if steps >= 0:
        batched = batched.apply(tf.data.experimental.assert_cardinality(steps))
    return batched.prefetch(2)
