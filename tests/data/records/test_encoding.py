"""Encoding of records."""

import numpy as np
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from bert.data.records import encoding

# Varints grow by a byte every seven bits; small numbers are in a table.
SIZES = [2**bits + more for bits in (0, 7, 14, 17, 21, 62) for more in (-1, 0)]
INTEGERS = st.sampled_from([0, *SIZES]) | st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(width=32, allow_nan=False)


@st.composite
def features(draw):
    """Feature name -> array of rows, in alphabetical order."""
    count, arrays = draw(st.integers(1, 4)), {}
    for name in sorted(draw(st.sets(st.sampled_from("abcd"), min_size=1))):
        values = draw(st.sampled_from([INTEGERS, st.integers(0, 130), FLOATS]))
        length = draw(st.sampled_from([1, 2, 5, 131]))
        row = st.lists(values, max_size=7).map(
            lambda x, length=length: [*x, *[0] * length][:length]
        )
        rows = draw(st.lists(row, min_size=count, max_size=count))
        kind = np.float32 if values is FLOATS else np.int64
        arrays[name] = np.array(rows, kind)
    return arrays


def protobuf(arrays, number):
    """The record of one row, by TensorFlow."""
    feature = {}
    for name, values in arrays.items():
        row = values[number].tolist()
        if values.dtype.kind == "f":
            found = tf.train.Feature(float_list=tf.train.FloatList(value=row))
        else:
            found = tf.train.Feature(int64_list=tf.train.Int64List(value=row))
        feature[name] = found
    example = tf.train.Example(features=tf.train.Features(feature=feature))
    return example.SerializeToString(deterministic=True)


@given(features())
def test_bytes_are_those_of_protobuf(arrays):
    count = len(next(iter(arrays.values())))
    expected = [protobuf(arrays, number) for number in range(count)]
    assert encoding.encode_examples(arrays) == expected


def test_features_are_in_the_order_given():
    one = np.ones([1, 1], np.int64)
    for names in (["b", "a", "c"], ["c", "b", "a"]):
        (record,) = encoding.encode_examples(dict.fromkeys(names, one))
        offsets = [record.index(name.encode()) for name in names]
        assert offsets == sorted(offsets)
