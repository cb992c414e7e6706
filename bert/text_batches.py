"""Batches of an encoder's inputs, of texts in whatever holds them."""

import contextlib
import math

import numpy as np
import tensorflow as tf

from bert import row_batches, text_labels
from bert.common.errors import UserError
from bert.data import features
from bert.data.label_kinds import CLASSES, MULTI_LABEL, Labels
from bert.data.sequences import HEAD
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
        truncate: what is kept of longer texts.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        max_length: int,
        labels: Labels,
        seed: int,
        truncate: str = HEAD,
    ):
        self._tokenizer, self._max_length = tokenizer, max_length
        self._labels, self._seed, self._truncate = labels, seed, truncate
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

    def rows(self, x) -> list[tuple[list[int], list[int]]]:
        """The ids and segment ids of texts, without padding.

        Raises:
            UserError: a text is invalid.
        """
        return self._columns(x)[0]

    def unlabeled(self, x, batch_size: int):
        """Batches of the encoder's inputs, of texts of similar lengths.

        Returns:
            the batches, and the position of each text in them.

        Raises:
            UserError: a text is invalid.
        """
        if isinstance(x, tf.data.Dataset):
            if isinstance(x.element_spec, tuple):
                x = x.map(lambda *element: element[:1])  # labels are not read
            return self._encoded(x), slice(None)

        return row_batches.by_length(self.rows(x), batch_size)

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
        texts = x if isinstance(x, tuple) else (x,)
        if len(texts) not in (1, 2):
            raise UserError(
                f"{len(texts)} columns of texts", expected="one, or two"
            )

        fix = "pass one, or a tuple of two for pairs"
        a, *b = (strings(part, "texts", fix) for part in texts)
        others = [] if y is None else [text_labels.ids(y, self._labels)]
        if weights is not None:
            others.append(finite(weights, "sample_weight"))

        sizes = [len(a), *map(len, b), *map(len, others)]
        if len(set(sizes)) > 1:
            raise UserError(
                f"{' and '.join(map(str, sizes))} rows",
                expected="as many labels as texts",
            )

        # The tokenizer takes pairs; an empty second text stands for none.
        b = b[0] if b else [""] * len(a)
        rows = self._tokenizer.rows(a, b, self._max_length, self._truncate)
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


def _decoded(texts: np.ndarray) -> np.ndarray:
    """Strings of bytes, in the same shape."""
    return np.vectorize(lambda x: x.decode(errors="replace"), "O")(texts)
