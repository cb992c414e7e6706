"""Encoding of records."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from bert.data.records import encoding


def parsed(serialized):
    """A serialized example: name -> (kind, values)."""
    example = tf.train.Example.FromString(serialized)
    return {
        name: (
            feature.WhichOneof("kind"),
            list(getattr(feature, feature.WhichOneof("kind")).value),
        )
        for name, feature in example.features.feature.items()
    }


@pytest.mark.parametrize("length", [1, 2, 131])
@pytest.mark.parametrize(
    "dtype, kind, field",
    [
        (np.int64, tf.train.Int64List, "int64_list"),
        (np.float32, tf.train.FloatList, "float_list"),
    ],
)
def test_bytes_are_those_of_protobuf(length, dtype, kind, field):
    array = np.arange(3 * length).reshape(3, length).astype(dtype)
    expected = []
    for row in array:
        feature = tf.train.Feature(**{field: kind(value=row)})
        example = tf.train.Example(
            features=tf.train.Features(feature={"ids": feature})
        )
        expected.append(example.SerializeToString(deterministic=True))
    assert encoding.encode_examples({"ids": array}) == expected


@pytest.mark.parametrize("bits", [7, 14, 17, 21, 63])
def test_the_highest_number_of_a_size_survives(bits):
    for value in (2**bits - 1, 2**bits % 2**63):
        array = np.array([[value, 0], [0, value]], np.int64)
        encoded = encoding.encode_examples({"ids": array})
        assert [parsed(record)["ids"][1] for record in encoded] == (
            array.tolist()
        )


def test_features_are_in_the_order_given():
    one = np.ones([1, 1], np.int64)
    for names in (["b", "a", "c"], ["c", "b", "a"]):
        (record,) = encoding.encode_examples(dict.fromkeys(names, one))
        offsets = [record.index(name.encode()) for name in names]
        assert offsets == sorted(offsets)


@settings(deadline=None, max_examples=50, derandomize=True)
@given(
    st.lists(
        st.lists(st.integers(-(2**63), 2**63 - 1), min_size=3, max_size=3),
        min_size=1,
        max_size=5,
    ),
    st.floats(width=32, allow_nan=False),
)
def test_any_number_survives(rows, number):
    arrays = {
        "ids": np.array(rows, np.int64),
        "weights": np.full([len(rows), 2], number, np.float32),
    }
    assert [parsed(r) for r in encoding.encode_examples(arrays)] == [
        {
            "ids": ("int64_list", row),
            "weights": ("float_list", [number, number]),
        }
        for row in rows
    ]
