"""Outputs of an export's SavedModel, as TF Serving computes them."""

from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from bert.data import postprocessing
from bert.data.labels import CLASSES, MULTI_LABEL, Labels, PostProcessing
from bert.export import folder, saved_model
from bert.modeling.formats import conversion, openvino
from bert.modeling.formats.model import Model
from tests.helpers import classifier_files, small

NAMES = ("a", "b", "c")


@pytest.mark.parametrize(
    ("kind", "decision"),
    [
        (CLASSES, PostProcessing()),
        (CLASSES, PostProcessing((), (), 1.0, 0.5)),
        (CLASSES, PostProcessing((), (0.0, 1.0, 2.0), 1.5, 0.4)),
        (CLASSES, PostProcessing((0.0, 0.5, 2.0), (0.0, 1.0, 2.0), 1.5)),
        (MULTI_LABEL, PostProcessing((0.0, 0.5, -2.0), (), 1.5)),
    ],
    ids=str,
)
def test_predictions_are_those_of_the_post_processing(kind, decision):
    """Corrected class weights, temperatures, thresholds and rejections."""
    logits = np.random.default_rng(3).normal(0, 1, (61, 3)).astype("f4")
    limits = [[0, 0, -1000], decision.thresholds or (0, 0, 0)]
    logits = np.vstack([logits, limits]).astype("f4")
    labels = Labels(kind, NAMES, decision=decision)
    found = saved_model._predictions(tf.constant(logits), labels)
    np.testing.assert_allclose(
        found["probabilities"],
        postprocessing.probabilities(logits, kind, decision),
        atol=1e-6,
    )
    best = postprocessing.predictions(logits, kind, decision)
    rows = found["label"].numpy().tolist()
    if kind == MULTI_LABEL:
        expected = [[x for x, y in zip(NAMES, row) if y] for row in best]
        rows = [[x.decode() for x in row if x] for row in rows]
    else:
        chances = postprocessing.probabilities(logits, kind, decision)
        unknown = postprocessing.is_rejected(chances, best, decision)
        expected = ["" if x else NAMES[i] for i, x in zip(best, unknown)]
        rows = [x.decode() for x in rows]
        assert unknown.any() == (decision.unknown_below > 0)
    assert rows == expected


def test_an_empty_batch_has_empty_outputs(tmp_path_factory):
    export = classifier_files.shared_export(tmp_path_factory)
    call = tf.saved_model.load(export).signatures["serving_default"]
    found = call(text=tf.constant([], tf.string))
    assert {name: x.shape[0] for name, x in found.items()} == {
        "label": 0,
        "probabilities": 0,
        "label_names": 0,
    }


@pytest.mark.parametrize(
    ("texts", "expected"), [(0, 0), (300, 300), (301, 151), (700, 234)]
)
def test_at_most_300_texts_of_all_calibrate_int8(
    tmp_path, monkeypatch, texts, expected
):
    for module, name in (
        (saved_model, "FineTunedModel"),
        (saved_model, "save"),
        (conversion, "write_files"),
        (openvino, "write"),
    ):
        monkeypatch.setattr(module, name, mock.MagicMock())
    model = Model("", small.config(), {})
    rows = [([number], [0]) for number in range(texts)]
    folder.write_model(str(tmp_path), model, "float32", "int8", rows)
    batches = openvino.write.call_args[0][-1]
    ids = [int(batch["input_ids"][0, 0]) for batch in batches]
    assert len(ids) == expected
    assert ids == sorted(set(ids)) and texts - max(ids, default=0) < 4
