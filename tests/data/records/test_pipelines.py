"""Iterators are destroyed without delay."""

import time

import numpy as np
import tensorflow as tf

from data import batching, features
from data.records import example_files, pipelines, reader

ITERATORS, SECONDS = 300, 2.5


def seconds_to_destroy(dataset):
    """Destroys many iterators that have lived for a while."""
    iterators = [iter(dataset) for _ in range(ITERATORS)]
    start = time.monotonic()
    while time.monotonic() - start < SECONDS:
        for iterator in iterators:
            next(iterator)
    start = time.monotonic()
    while iterators:
        iterators.pop()
    return time.monotonic() - start


def test_iterators_are_destroyed_without_delay():
    numbers = tf.data.Dataset.range(10**9).prefetch(8)
    assert (
        seconds_to_destroy(pipelines.without_autotuning(numbers)) < SECONDS / 2
    )


def test_batches_of_training_and_evaluation_are_not_tuned(tmp_path):
    schema = features.pretraining_schema(11, 3)
    path = tmp_path / "empty.tfrecord"
    path.touch()
    example = {
        features.INPUT_IDS: np.array([1, 2]),
        features.SEGMENT_IDS: np.array([0, 0]),
    }
    examples = example_files.Examples([example] * 3, {})
    for batches in (
        reader.training_batches([str(path)], 5, schema, 2, seed=1, step=0),
        reader.evaluation_batches([str(path)], schema, 2, 1),
        batching.training_batches(examples, [16], 2, seed=1, step=0),
    ):
        assert batches.options().autotune.enabled is False
