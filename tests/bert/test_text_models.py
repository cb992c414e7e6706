"""Every public class: training, files and exports are those of its script.

trained.folder -> class -> fit, evaluate, save, bert.save, export
"""

import json

import keras
import numpy as np
import pytest

import bert
from bert.data.labels import PLAIN
from bert.modeling import networks
from bert.tasks.squad import examples as squad
from tests.helpers import run_folders, trained

pytestmark = pytest.mark.slow
CLASSES = {  # key of trained.TASKS -> class, arguments for a new model
    "several": (
        bert.TextClassifier,
        {"labels": trained.LABELS, "multi_label": True},
    ),
    "numbers": (
        bert.TextClassifier,
        {"regression": True, "truncate": "head_tail"},
    ),
    "pairs": (bert.TextClassifier, {"labels": ["1", "0"]}),
    "words": (
        bert.TokenClassifier,
        {"labels": ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]},
    ),
    "questions": (
        bert.QuestionAnswerer,
        {
            "null_threshold": 1.3,
            "max_query_length": 5,
            "doc_stride": 4,
            "n_best_size": 5,
            "max_answer_length": 4,
        },
    ),
    "windows": (bert.TextClassifier, None),
}
SINGLE = [x for x, _ in trained.SINGLE]
INPUTS = {
    **dict.fromkeys(("several", "numbers", "windows"), SINGLE),
    "pairs": tuple(zip(*trained.PAIRS)),
    "words": [*trained.SENTENCES, [], ["", "\ud800"]],
    "questions": tuple(zip(*trained.ASKED_QUESTIONS, ("", ""))),
}
DEFAULTS = {"pairs": False, "document_context": False}
EVERY = pytest.mark.parametrize("name", CLASSES)
TRAINED = pytest.mark.parametrize(
    "name",
    [
        *("several", "pairs", "words", "questions"),
        pytest.param("numbers", marks=pytest.mark.long),
    ],
)


@pytest.fixture
def run_of(tmp_path_factory):
    return lambda name: trained.folder(tmp_path_factory, name)


@pytest.fixture
def run(name, run_of):
    """The shared run of a case."""
    return run_of(name)


@pytest.fixture
def model_of(run_of):
    return lambda name: CLASSES[name][0](run_of(name).run)


def labelled(run, name):
    """Inputs and labels for training and evaluation."""
    labels = {
        "several": trained.SEVERAL,
        "numbers": trained.NUMBERS,
        "pairs": [str(i % 2) for i in range(len(trained.PAIRS))],
        "words": trained.TAGS,
    }
    if name in labels:
        return [(INPUTS[name][: len(labels[name])], labels[name])] * 2
    files = []
    for file in ("train", "asked"):
        path = run.run.parent / f"{file}.json"
        examples = squad.read(str(path), squad.SPANS).rows
        x = tuple(zip(*((x.question, x.context) for x in examples)))
        files.append((x, [[y.text for y in x.answers] for x in examples]))
    return files


def numbers_of(predictions):
    """The probabilities and other scores in columns of predictions, flat."""
    return np.concatenate(
        [
            np.concatenate([[], *map(np.ravel, column)])
            for name, column in predictions.items()
            if name in ("probabilities", "probability", "null_odds", "value")
        ]
    )


def assert_same(found, expected):
    np.testing.assert_allclose(numbers_of(found), numbers_of(expected), 1e-5)
    for name in expected.keys() & {"label", "labels", "answer", "entities"}:
        assert found[name] == expected[name]


@TRAINED
def test_fit_and_evaluate_are_those_of_the_script(name, run, monkeypatch):
    """Each batch is all examples: only the order of sums may differ."""
    monkeypatch.setattr(networks, "POOLED_DROPOUT", 0.0)
    (x, y), dev = labelled(run, name)
    make, arguments = CLASSES[name]
    model = make(str(run.run.parent), **arguments, max_length=17, seed=1)
    _, flags, _ = trained.TASKS[name]
    size = len(model._encoded(model._training_rows(x, y, None)))
    assert size == flags["train_batch_size"]
    script = make(run.run)
    expected = numbers_of(script.predict(dev[0], verbose=0))
    # The runs of `trained` have the original's recipe.
    recipe = {"start_head": False} if make is bert.TextClassifier else {}
    history = model.fit(
        *(x, y, size),
        **recipe,
        epochs=flags["num_train_epochs"],
        learning_rate=trained.RATE,
        validation_data=dev,
        verbose=0,
    ).history
    assert history["loss"][-1] < history["loss"][0] - 0.1
    found = numbers_of(model.predict(dev[0], verbose=0))
    np.testing.assert_allclose(found, expected, 1e-3, 1e-3)

    scores, last = (
        z.evaluate(*dev, verbose=0, return_dict=True)
        if make is bert.TextClassifier
        else z.evaluate(*dev, verbose=0)
        for z in (script, model)
    )
    wanted = run_folders.results(run.run)
    if name == "several":  # cross-fitted; see test_later_runs.py
        scores.clear()
    for key, value in scores.items():
        expected = wanted.get(f"eval_{key}", wanted.get(key))
        assert value == pytest.approx(expected, 1e-4), key
    names = [key for key in history if key.startswith("val_")]
    assert names
    for key in names:
        expected = pytest.approx(last[key.removeprefix("val_")], 1e-5)
        assert history[key][-1] == expected


@EVERY
def test_a_batch_is_predicted_as_all_are(name, model_of):
    model, inputs = model_of(name), INPUTS[name]
    expected = model.predict(inputs, verbose=0)
    assert_same(model.predict(inputs, 2, verbose=0), expected)
    assert_same(model.predict_on_batch(inputs), expected)
    nothing = ([], []) if isinstance(inputs, tuple) else []
    for predict in (model.predict, model.predict_on_batch):
        assert {len(column) for column in predict(nothing).values()} == {0}


def config_of(model):
    """The arguments of a model, besides its network."""
    found = model.get_config()
    return {k: x for k, x in found.items() if k not in ("network", "name")}


@pytest.mark.usefixtures("eagerly")
@EVERY
def test_a_file_and_a_folder_have_the_settings(name, model_of, tmp_path):
    model = model_of(name)
    expected = model.predict(INPUTS[name], verbose=0)
    model.save(tmp_path / "model.keras")
    bert.save(model, tmp_path / "saved")
    for again in (
        keras.saving.load_model(tmp_path / "model.keras"),
        type(model)(str(tmp_path / "saved")),
    ):
        assert again.get_compile_config() is None  # `fit` makes a schedule
        assert config_of(again) == config_of(model)
        assert_same(again.predict(INPUTS[name], verbose=0), expected)


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("name", ["several", "words"])
def test_a_keras_file_has_the_optimizer(name, run_of, model_of, tmp_path):
    model, path = model_of(name), tmp_path / "model.keras"
    model.compile(keras.optimizers.Adam(1e-3))
    (x, y), _ = labelled(run_of(name), name)
    before = model.predict(x, verbose=0)
    for _ in range(3):
        model.train_on_batch(x, y)
    change = numbers_of(model.predict(x, verbose=0)) - numbers_of(before)
    assert np.abs(change).max() > 1e-3
    if name == "several":  # thresholds were fitted to weights that are gone
        assert model.labels.decision == PLAIN
        assert "decision" not in model.network.task
    model.save(path)
    again = keras.saving.load_model(path)
    expected = model.predict(INPUTS[name], verbose=0)
    assert_same(again.predict(INPUTS[name], verbose=0), expected)
    slots = [z.optimizer.variables for z in (model, again)]
    for variable, other in zip(*slots, strict=True):
        np.testing.assert_array_equal(variable, other)


@pytest.mark.parametrize("name", ["windows", "pairs", "words", "questions"])
def test_an_export_is_that_of_the_script(name, run_of, model_of, tmp_path):
    theirs, ours = run_of(name).export, tmp_path / "export"
    model_of(name).export(ours, **{"pairs": True} if name == "pairs" else {})
    names = {path.name for path in theirs.iterdir()}
    names -= {"README.md", "assets.extra"}
    assert {path.name for path in ours.iterdir()} == names
    for pattern in ("*.txt", "bert_config.json", "variables/*.data*"):
        for folder in (".", "openvino"):
            found, wanted = (
                run_folders.digests(x / folder, pattern) for x in (ours, theirs)
            )
            assert found == wanted
    for path in ("task.json", "openvino/task.json"):
        found, wanted = (
            DEFAULTS | json.loads((x / path).read_text())
            for x in (ours, theirs)
        )
        assert found == wanted
    network = "openvino/openvino_model.bin"
    assert (ours / network).read_bytes() == (theirs / network).read_bytes()
