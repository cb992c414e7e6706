"""The first weights of a head, from a frozen encoder."""

import numpy as np
import pytest

from bert.data.labels import Labels
from bert.data.text.tokenizer import Tokenizer
from bert.inference import frozen_features
from bert.inference.predictor import Predictor
from bert.modeling import networks
from bert.modeling.engines.keras_engine import KerasEngine
from bert.modeling.task_heads import CLASSIFIER
from bert.tasks import evaluation
from bert.tasks.classification.glue import TextExample
from bert.tasks.classification.task import TextClassification
from tests.helpers import model_files


@pytest.fixture
def started(tmp_path):
    """Starts a head for rows; returns its predictions of texts."""
    config = model_files.write_sizes(tmp_path, initializer_range=0.5)
    network = networks.build(config, CLASSIFIER, 2)
    tokenizer = Tokenizer(str(tmp_path / "vocab.txt"), do_lower_case=True)
    task = TextClassification(tokenizer, Labels(names=("n", "y")), 13)

    encoder = network.get_layer("bert")

    def start(rows, texts):
        found = frozen_features.fit_head(encoder, task, rows)
        if found:
            frozen_features.add(network, CLASSIFIER, found.weights)
        engine = KerasEngine(encoder, network.get_layer(CLASSIFIER))
        predicted = Predictor(task, engine)([{"text": x} for x in texts])
        return found, [x["label"] for x in predicted]

    return start


def test_rows_of_all_labels_are_drawn_from_a_sorted_table(started, monkeypatch):
    monkeypatch.setattr(evaluation, "MAX_FITTED", 20)
    rows = [TextExample(text="the cat", label=0)] * 40
    rows += [TextExample(text="small dog sees", label=1)] * 40
    found, predicted = started(rows, ["the cat", "small dog sees"])
    assert predicted == ["n", "y"] and np.isfinite(found.weights).all()


def test_few_labels_start_no_head(started):
    rows = [TextExample(text="the cat", label=0)] * 9
    rows += [TextExample(text="small dog sees")] * 9  # for a teacher
    assert started(rows, ["the cat"])[0] is None
