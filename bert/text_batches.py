"""Batches of an encoder's inputs, of texts in whatever holds them."""

import contextlib
import itertools
import math
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from bert import row_batches, text_labels
from bert.common.errors import UserError
from bert.data import features
from bert.data.label_kinds import CLASSES, MULTI_LABEL, Labels
from bert.data.sequences import FIRST_TOKENS, Row
from bert.data.text.columns import finite, strings
from bert.data.text.tokenizer import Tokenizer


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
            return row_batches.training(
                columns, batch_size, self._seed, shuffle
            )

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
            row_batches.training(first, batch_size, self._seed, shuffle),
            row_batches.training(last, batch_size, self._seed),
        )

    def rows(self, x) -> list[Row]:
        """The ids and segment ids of texts, truncated, without padding.

        Raises:
            UserError: a text is invalid.
        """
        return self._columns(x)[0]

    def windows(self, x) -> list[list[Row]]:
        """The sequences of each text: one, or its windows.

        Raises:
            UserError: a text is invalid.
        """
        return self._tokenizer.windows(
            *_texts(x), self._max_length, self.long_texts
        )

    def unlabeled(
        self, x, batch_size: int
    ) -> tuple[tf.data.Dataset, Callable[[np.ndarray], np.ndarray]]:
        """Batches of the encoder's inputs, of texts of similar lengths.

        Returns:
            the batches, and a function from their logits to those of the
            texts, in order.

        Raises:
            UserError: a text is invalid.
        """
        if isinstance(x, tf.data.Dataset):
            if self.long_texts.pool:
                raise UserError(
                    "a tf.data.Dataset, and long texts in windows",
                    expected="texts in a list or a column",
                )
            if isinstance(x.element_spec, tuple):
                x = x.map(lambda *element: element[:1])  # labels are not read
            return self._encoded(x), lambda logits: logits

        windows = self.windows(x)
        rows = [*itertools.chain.from_iterable(windows)]
        batches, order = row_batches.by_length(rows, batch_size)
        counts = [*map(len, windows)]
        return batches, lambda x: self.long_texts.pooled(x[order], counts)

    def _encoded(self, x: tf.data.Dataset) -> tf.data.Dataset:
        """Converts a dataset of batches of strings, and perhaps of labels."""
        is_tuple = isinstance(x.element_spec, tuple)
        spec = x.element_spec if is_tuple else (x.element_spec,)
        if isinstance(spec[0], dict) and features.INPUT_IDS in spec[0]:
            return x  # of `fit`, for its validation

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
                decoded = tuple(_decoded(column) for column in texts)
                if others and others[0].dtype == object:  # names of labels
                    others[0] = _decoded(others[0])

                try:
                    columns = self._columns(decoded, *others)
                except UserError as error:
                    self._error = error  # TensorFlow raises another
                    raise
                yield row_batches.batch(columns)

        return row_batches.dataset(
            batches, self._signature(len(spec)), int(x.cardinality())
        )

    def _signature(self, size: int) -> tuple:
        """The first 1, 2 or 3 of the specs of inputs, labels and weights."""
        kind = self._labels.kind
        shape = [None, self._labels.size] if kind == MULTI_LABEL else [None]
        return (
            row_batches.INPUTS,
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
        others = [] if y is None else [text_labels.ids(y, self._labels)]
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
