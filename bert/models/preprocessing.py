"""Texts, labels and weights of a text classifier, from any container."""

import contextlib
import math
from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from bert.common.errors import UserError
from bert.data import batching
from bert.data.labels import MULTI_LABEL, Labels
from bert.data.records.examples import Examples
from bert.data.text.array_inputs import finite, strings
from bert.models import label_encoder
from bert.tasks.classification.files import TextExample


class TextBatches:
    """Converts texts, and optional labels and weights, to examples.

    Texts are a column of strings, a tuple of two columns for pairs, or a
    `tf.data.Dataset`. Batches of a dataset are texts, `(texts, labels)` or
    `(texts, labels, weights)`.

    Args:
        labels: Labels. Kind and names of the labels.
    """

    def __init__(self, labels: Labels):
        self._labels = labels
        self._error: UserError | None = None  # of a text in a dataset

    def batches(
        self,
        x: tf.data.Dataset,
        y,
        weights,
        encode: Callable[[list[TextExample], bool], Examples],
        lengths: Sequence[int],
    ) -> tf.data.Dataset:
        """Encodes the batches of a dataset for training.

        Args:
            x: tf.data.Dataset. Labelled texts, see the class.
            y, weights: None.
            encode: callable. Converts examples, and whether they have
                weights, to `Examples`.
            lengths: sequence of int. Allowed lengths of the batches.

        Raises:
            UserError: The dataset has no labels, or `y` or `weights` is given.
        """
        _check_alone(x, y, weights)
        decoded, has_weights = self._text_batches(x), len(x.element_spec) > 2

        def batches():
            for texts, *others in decoded():
                try:
                    rows = self._examples(texts, *others)
                except UserError as error:
                    self._error = error  # TensorFlow hides its type
                    raise
                examples = encode(rows, has_weights)
                every = np.arange(len(examples))
                yield batching.batch(examples, lengths, every)

        features = encode([], has_weights)
        encoded = batching.dataset(batches, features, lengths, None)
        steps = int(x.cardinality())
        if steps < 0:
            return encoded

        # Keras cannot see the number of batches of a generator.
        return encoded.apply(tf.data.experimental.assert_cardinality(steps))

    def examples(
        self, x, y=None, weights=None, needs_labels: bool = True
    ) -> list[TextExample]:
        """Returns examples, with labels unless `y` is None.

        Args:
            x: column, tuple or tf.data.Dataset. The texts, see the class.
            y: column or None. The labels; None if `x` is a dataset.
            weights: column or None. Weights of the texts.
            needs_labels: bool. Whether `y` is an error if it is None. Default:
                True.

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
        elif y is None and needs_labels:
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
        labels: list = [None] * len(a)
        if y is not None:
            ids = label_encoder.ids(y, self._labels)
            is_several = self._labels.kind == MULTI_LABEL
            labels = (ids.astype(int) if is_several else ids).tolist()
        sizes, sample_weights = [len(a), len(labels)], [1.0] * len(a)
        if weights is not None:
            sample_weights = finite(weights, "sample_weight").tolist()
            sizes.append(len(sample_weights))
        _check_sizes(sizes)
        return [
            TextExample(str(i), text, text_b, label, weight=weight)
            for i, (text, text_b, label, weight) in enumerate(
                zip(a, b, labels, sample_weights)
            )
        ]

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


def split(examples: list, fraction: float) -> tuple[list, list]:
    """Splits examples into those for training and for validation.

    Args:
        examples: list. N examples.
        fraction: float. Fraction of the examples for validation, taken from the
            end.

    Raises:
        UserError: One of the parts would be empty.
    """
    count, at = len(examples), 0
    if isinstance(fraction, int | float) and 0 < fraction < 1:
        at = math.floor(count * (1.0 - fraction))
    if not 0 < at < count:
        raise UserError(
            f"validation_split={fraction} of {count} texts",
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


def _decoded(texts: NDArray) -> NDArray:
    """Decodes an array of bytes to strings, in the same shape."""
    return np.vectorize(lambda x: x.decode(errors="replace"), "O")(texts)
