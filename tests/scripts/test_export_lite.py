"""run_classifier --export_lite: one or two texts are answered by LiteRT."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

import run_classifier
from bert.common import flags
from bert.serving import asking, lite, predict_settings
from bert.serving.http import servable
from bert.serving.http.settings import Settings
from tests.helpers import classifier_files
from tests.helpers.classifier_files import DEV, rows_of


@pytest.mark.slow
def test_few_texts_are_answered_from_the_file(
    run_script, monkeypatch, tmp_path
):
    classifier_files.write_model(tmp_path)
    classifier_files.write_task(tmp_path)
    named = classifier_files.flags_of(tmp_path)
    named |= {"output_dir": tmp_path / "run", "num_train_epochs": 3}
    named |= {"do_lower_case": False}  # "Cat" is unknown
    open_network, export = lite.open_network, keras.Model.export
    folder, sizes, options = tmp_path / "export", [], []

    def watch_export(model, path, **given):
        options.append(given.get("optimizations"))
        return export(model, path, **given)

    def watch_network(path):
        network = open_network(path)
        return lambda *x: sizes.append(len(x[0])) or network(*x)

    monkeypatch.setattr(keras.Model, "export", watch_export)
    words = ("--do_train", "--do_eval", "--export_lite=int8")
    code, _, err = run_script(
        run_classifier, *words, export_dir=folder, **named
    )
    assert code == 0, err
    assert options == [[tf.lite.Optimize.DEFAULT]]
    scores = json.loads((folder / "assets.extra/metrics.json").read_text())
    assert scores["lite_accuracy"] == scores["eval_accuracy"]
    assert scores["lite_changed_labels"] == 0
    assert "LiteRT, int8 | " in err and " | changed_labels 0\n" in err

    monkeypatch.setattr(lite, "open_network", watch_network)
    rows = [row[3:] for row in rows_of(tmp_path / "dev.tsv")[1:]]
    rows[:2] = [["the Cat", ""], ["cat dog tree " * 9, "a bird"]]
    model = asking.load(predict_settings.Settings(model=str(folder)))
    expected = asking.answer(model, rows, 3)
    assert sizes == [1]  # the last batch
    found = asking.answer(model, rows, 2)
    assert sizes == [1] + [2] * 9 + [1]
    assert [x["label"] for x in found] == [x["label"] for x in expected]
    expected, found = (
        np.array([list(x["probabilities"].values()) for x in answers])
        for answers in (expected, found)
    )
    np.testing.assert_allclose(found, expected, atol=1e-5)

    settings = flags.replace(Settings(), max_batch_size=DEV)
    model = servable.Servable(str(folder), settings, lambda size: None)
    sizes.clear()
    for count in (DEV, 3, 2):
        texts = zip(("text", "text_b"), zip(*rows[:count], strict=True))
        texts = {name: tf.constant(x) for name, x in texts}
        answers = model.call("serving_default", texts)["probabilities"]
        np.testing.assert_allclose(answers, expected[:count], atol=1e-5)
    assert sizes == [2]
