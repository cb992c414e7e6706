"""The oracle of the distributions equals the original, draw for draw."""

import hashlib
import json
import random

from bert.data.pretraining.settings import InstanceSettings
from tests.helpers import original_instances
from tests.helpers.pretraining_rows import FIRST, vocabulary


def test_instances_equal_those_of_the_original_release():
    """The digest was made with the original create_pretraining_data.py.

    Its create_instances_from_document (PyPI bert-tensorflow 1.0.4, its
    tensorflow removed) ran over these documents as tokens, with the same
    random.Random, and its tokens were turned back into ids.
    """
    rng = random.Random(23)
    documents = [
        [
            [rng.randrange(FIRST, 97) for _ in range(rng.randint(1, 29))]
            for _ in range(rng.randint(1, 13))
        ]
        for _ in range(41)
    ]
    options = InstanceSettings(max_seq_length=31, max_predictions_per_seq=5)
    rng = random.Random(12345)
    rows = [
        [
            x.ids,
            x.segment_ids,
            x.masked_lm_ids,
            x.masked_lm_positions,
            x.is_random_next,
        ]
        for _ in range(3)
        for index in range(len(documents))
        for x in original_instances.create_instances_from_document(
            documents, index, options, vocabulary(97), rng
        )
    ]
    assert len(rows) == 555
    assert hashlib.sha256(json.dumps(rows).encode()).hexdigest() == (
        "617bf063400ac4bd4313dcb4662ab955cec267d19d61f6a8486df6b422aa201f"
    )
