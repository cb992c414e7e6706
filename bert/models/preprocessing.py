"""Converts texts, labels and weights to batches of encoder inputs.

Columns are rows, (ids, segment ids) without padding, and then labels and
weights for Keras: an array, [N, ...], or a list of N arrays, which are padded
as the rows are.
"""

import contextlib
import itertools
import math
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from bert.common import forks
from bert.common.errors import UserError
from bert.data import batching, features, length_batches, sequences
from bert.data.label_kinds import CLASSES, MULTI_LABEL, Labels
from bert.data.sequences import FIRST_TOKENS
from bert.data.text.columns import finite, strings
from bert.data.text.tokenizer import Tokenizer
from bert.models import label_encoder

INPUTS = dict.fromkeys(
    features.ENCODER_INPUTS, tf.TensorSpec([None, None], tf.int32)
)


class TextBatches:
    """Converts texts, and perhaps labels and weights, to batches.

    Texts are a column of strings, a tuple of two for pairs, or a
    `tf.data.Dataset` of batches of them, or of `(texts, labels)` or `(texts,
    labels, weights)`.

    Args:
        tokenizer: of the texts.
        max_length: S; longer texts are truncated.
        labels: kind and names of the labels.
        seed: of the order.

    Attributes:
        long_texts: what is read of longer texts.
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

    def labeled(
        self, x, y=None, weights=None, *, batch_size: int = 32, shuffle=False
    ) -> tf.data.Dataset:
        """Batches of the encoder's inputs, of ids of labels, and of weights.

        Raises:
            UserError: a text, a label or a weight is invalid, or there is none.
        """
        if not isinstance(x, tf.data.Dataset):
            columns = self.columns(x, y, weights)
            return training_batches(columns, batch_size, self._seed, shuffle)

        spec = x.element_spec
        has_labels = isinstance(spec, tuple) and len(spec) > 1
        if not has_labels or y is not None or weights is not None:
            raise UserError(
                f"x is a tf.data.Dataset of {spec!r:.60}, y is {y!r:.60}",
                expected="one of batches of (texts, labels), or of (texts, "
                "labels, weights), alone",
            )
        return self._encoded(x)

    def split(
        self, x, y, weights, share: float, batch_size: int, shuffle: bool
    ) -> tuple[tf.data.Dataset, tf.data.Dataset]:
        """Batches as of `labeled`, and those of the last texts, a share."""
        if isinstance(x, tf.data.Dataset):
            raise UserError(
                "validation_split is given, but x is a tf.data.Dataset",
                fix="pass validation_data",
            )

        first, last = split(self.columns(x, y, weights), share)
        return (
            training_batches(first, batch_size, self._seed, shuffle),
            training_batches(last, batch_size, self._seed),
        )

    def texts(self, x) -> tuple[list[str], list[str]]:
        """The first texts and the second ones, "" where there are none.

        Raises:
            UserError: a text is invalid, or there are not as many of both.
        """
        if not isinstance(x, tf.data.Dataset):
            return _texts(x)
        first, second = [], []
        for texts, *_ in self._text_batches(x)():
            a, b = _texts(texts)
            first += a
            second += b
        return first, second

    def _encoded(self, x: tf.data.Dataset) -> tf.data.Dataset:
        """Converts a dataset of batches of strings and labels."""
        if isinstance(x.element_spec[0], dict) and (
            features.INPUT_IDS in x.element_spec[0]
        ):
            return x  # of `fit`, for its validation

        decoded = self._text_batches(x)

        def batches():
            for texts, *others in decoded():
                try:
                    columns = self._columns(texts, *others)
                except UserError as error:
                    self._error = error  # TensorFlow raises another
                    raise
                yield batch(columns)

        signature = self._signature(len(x.element_spec))
        return dataset(batches, signature, int(x.cardinality()))

    def _text_batches(self, x: tf.data.Dataset) -> Callable:
        """Returns a function that yields the batches of a dataset.

        Each is a tuple of the columns of texts, decoded, and of labels and
        weights, if there are any.

        Raises:
            UserError: the dataset has no batches of strings.
        """
        is_tuple = isinstance(x.element_spec, tuple)
        spec = x.element_spec if is_tuple else (x.element_spec,)
        texts = spec[0] if isinstance(spec[0], tuple) else spec[:1]

        # A scalar is no batch, and a number is no text.
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
        """The first 1, 2 or 3 of the specs of inputs, labels and weights."""
        kind = self._labels.kind
        shape = [None, self._labels.size] if kind == MULTI_LABEL else [None]
        return (
            INPUTS,
            tf.TensorSpec(shape, tf.int32 if kind == CLASSES else tf.float32),
            tf.TensorSpec([None], tf.float32),
        )[:size]

    def columns(self, x, y, weights=None) -> tuple:
        """Columns of at least one text that has a label.

        Raises:
            UserError: a text, a label or a weight is invalid, or there is none.
        """
        if y is None:
            raise UserError(
                f"y is None, x a {type(x).__name__}",
                expected="labels in y, or in a tf.data.Dataset as x",
            )

        columns = self._columns(x, y, weights)
        if not columns[0]:
            raise UserError("no texts", expected="one or more")
        return columns

    def _columns(self, x, y=None, weights=None) -> tuple:
        """Ids of the texts, and labels and weights that are not None."""
        a, b = _texts(x)
        others = [] if y is None else [label_encoder.ids(y, self._labels)]
        if weights is not None:
            others.append(finite(weights, "sample_weight"))

        _check_sizes([len(a), *map(len, others)])
        truncate = self.long_texts.truncate
        rows = self._tokenizer.rows(a, b, self._max_length, truncate)
        return rows, *others

    @contextlib.contextmanager
    def errors(self):
        """Raises the error of a dataset's texts, not that of its graph."""
        try:
            yield
        except tf.errors.OpError:
            error, self._error = self._error, None
            if error is None:
                raise
            raise error from None


def split(columns: tuple, share: float) -> tuple[tuple, tuple]:
    """Columns without their last rows, and these, a share.

    Raises:
        UserError: there are no rows on one side.
    """
    count = len(columns[0])
    at = math.floor(count * (1.0 - share))
    if not 0 < at < count:
        raise UserError(
            f"validation_split={share} of {count} texts",
            expected="texts on both sides",
        )

    # Before any shuffle, as in Keras: the texts held out are the same.
    first, last = zip(*((part[:at], part[at:]) for part in columns))
    return first, last


def _texts(x) -> tuple[list[str], list[str]]:
    """The first texts and the second ones, "" where there are none.

    Raises:
        UserError: a text is invalid, or there are not as many of both.
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


def _check_sizes(sizes: list[int]) -> None:
    """Rejects columns of different sizes."""
    if len(set(sizes)) > 1:
        raise UserError(
            f"{' and '.join(map(str, sizes))} rows",
            expected="as many labels as texts",
        )


def _decoded(texts: np.ndarray) -> np.ndarray:
    """Strings of bytes, in the same shape."""
    return np.vectorize(lambda x: x.decode(errors="replace"), "O")(texts)


def training_batches(
    columns: tuple, batch_size: int, seed: int, shuffle: bool = False
) -> tf.data.Dataset:
    """Batches of an epoch; the shuffled ones are those of the scripts."""
    length_batches.check_size(batch_size)
    lengths = np.array([len(ids) for ids, _ in columns[0]])
    count = len(lengths)
    size = min(batch_size, count)
    steps, epochs = math.ceil(count / size), itertools.count()

    def batches():
        order = np.split(np.arange(count), range(size, count, size))
        if shuffle:  # endless, so an epoch goes on where the last ended
            step = next(epochs) * steps
            order = batching.choose(count, lengths, size, seed, step)
        for chosen in itertools.islice(order, steps):
            yield batch(columns, chosen)

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


def batch(columns: tuple, chosen: np.ndarray | None = None) -> tuple:
    """Some rows of the columns, or all: the encoder's inputs, and the others.

    Args:
        columns: the columns.
        chosen: numbers of the rows; None: all.
    """
    forks.check(forks.TENSORFLOW)
    chosen = range(len(columns[0])) if chosen is None else chosen
    rows = [columns[0][i] for i in chosen]
    length = max(len(ids) for ids, _ in rows)

    def taken(column):
        if isinstance(column, list):
            parts = [column[i] for i in chosen]
            return sequences.pad_rows(parts, length, parts[0].dtype)
        return column[np.asarray(chosen)]

    inputs = length_batches.pad(rows, length)
    return inputs, *map(taken, columns[1:])


def dataset(batches: Callable, signature: tuple, steps: int) -> tf.data.Dataset:
    """A dataset of what a generator yields.

    Args:
        batches: function without arguments, whose result is iterated.
        signature: specs of a batch.
        steps: number of the batches; less than 0: unknown.
    """
    forks.check(forks.TENSORFLOW)
    batched = tf.data.Dataset.from_generator(
        batches, output_signature=signature
    )

    # A generator cannot tell Keras the number of its batches.
    if steps >= 0:
        batched = batched.apply(tf.data.experimental.assert_cardinality(steps))
    return batched.prefetch(2)
