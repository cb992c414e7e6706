"""Settings of the pipelines."""

import numpy as np

from bert.data import batching, feature_names
from bert.data.records import reader
from bert.data.records.examples import Examples


def test_batches_of_training_and_evaluation_are_not_tuned(tmp_path):
    schema = feature_names.pretraining_schema(11, 3)
    path = tmp_path / "empty.tfrecord"
    path.touch()
    example = {
        feature_names.INPUT_IDS: np.array([1, 2]),
        feature_names.SEGMENT_IDS: np.array([0, 0]),
    }
    examples = Examples([example] * 3, {})
    for batches in (
        reader.training_batches([str(path)], 5, schema, 2, seed=1, step=0),
        reader.evaluation_batches([str(path)], schema, 2, 1),
        batching.training_batches(examples, [16], 2, seed=1, step=0),
    ):
        assert batches.options().autotune.enabled is False
