import json
import math
import pathlib
import re
import runpy
import threading

import keras
import numpy as np
import pandas
import pytest
import tensorflow as tf
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

import bert
from bert.common.errors import UserError
from bert.data.labels import (
    CLASSES,
    MULTI_LABEL,
    PLAIN,
    Labels,
    PostProcessing,
)
from bert.data.text import vocabulary
from bert.modeling.formats import checkpoint_files
from bert.models import label_encoder
from bert.tasks import recipe
from bert.tasks.classification.task import TextClassification
from bert.tasks.recipe import Recipe
from tests.helpers import library_files
from tests.helpers.frames import Frame

SPAM = ["Win a prize now!", "free money now", "win free money", "A free prize"]
HAM = ["see you at noon", "lünch at noon?", "see you now", "lünch"]
TEXTS, LABELS = (SPAM + HAM) * 8, (["spam"] * 4 + ["ham"] * 4) * 8
WORDS = ("win a prize now ! free money see you at noon ? lünch").split()
TINY = bert.BertConfig(
    vocab_size=18,
    hidden_size=16,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=32,
    max_position_embeddings=16,
    initializer_range=0.1,
)
FIT = {"batch_size": 8, "verbose": 0}
dataset = tf.data.Dataset.from_tensor_slices


@pytest.fixture(scope="module")
def tokenizer():
    tokens = [*vocabulary.SPECIAL_TOKENS, *WORDS]
    return bert.Tokenizer("vocab.txt", strip_accents=False, tokens=tokens)


@pytest.fixture(scope="module")
def new(tokenizer):
    def make(labels=("ham", "spam"), **arguments):
        keras.utils.set_random_seed(12345)  # of dropout
        pair = bert.new_encoder(TINY), tokenizer
        return bert.TextClassifier(pair, labels, max_length=16, **arguments)

    return make


@pytest.fixture
def model_of_words(tokenizer):
    return bert.TokenClassifier((bert.new_encoder(TINY), tokenizer), ["O", "X"])


@pytest.fixture(scope="module")
def fitted(new):
    model = new()
    model.fit(
        TEXTS,
        LABELS,
        epochs=8,
        learning_rate=3e-3,
        validation_split=0.25,
        **FIT,
    )
    return model


def trained(model, texts, labels, epochs, **arguments):
    """Trains with an optimizer of Keras, which is not compiled by XLA."""
    model.compile(keras.optimizers.Adam(3e-3))
    model.fit(texts, labels, epochs=epochs, **FIT, **arguments)
    return model


def probabilities(model, texts=TEXTS, **arguments):
    return model.predict(texts, verbose=0, **arguments)["probabilities"]


def test_the_schedule_ends_with_the_last_epoch(fitted):
    schedule = fitted.optimizer._learning_rate
    # 48 of 64 texts are not held out: 6 batches of 8 in each of 8 epochs.
    assert (schedule.num_train_steps, schedule.num_warmup_steps) == (48, 4)
    assert schedule.peak == pytest.approx(3e-3)
    names = {f"val_{x}" for x in ("loss", "accuracy", "macro_f1")}
    assert names <= fitted.history.history.keys()
    assert fitted.predict(["lünch", *SPAM], 2, verbose=0)["label"] == [
        *("ham", *["spam"] * 4)
    ]


def test_fit_has_the_optimizer_and_the_batches_of_its_recipe(new, monkeypatch):
    chosen = Recipe(False, 2.0, 1e-3, "corrected_adamw", 4)
    monkeypatch.setattr(recipe, "choose", lambda *given: chosen)
    model = new()
    model.fit(TEXTS, LABELS, verbose=0)
    assert model.recipe == chosen and model.optimizer.rule == chosen.optimizer
    assert int(model.optimizer.iterations) == 2 * len(TEXTS) / 4


def test_fit_passes_its_batch_size_to_the_recipe(new, monkeypatch):
    """After `compile`, the default is Keras'."""
    sizes = []

    def choose(num_rows, batch_size, *given):
        sizes.append(batch_size)
        return Recipe(train_batch_size=batch_size or 16)

    monkeypatch.setattr(recipe, "choose", choose)
    for given in ({}, {"batch_size": 64}):
        model = new()
        model.fit(TEXTS, LABELS, epochs=1, verbose=0, **given)
        model.compile("adam")
        model.fit(TEXTS, LABELS, verbose=0, **given)
    assert sizes == [None, 32, 64, 64]
    for invalid in (0, 1.5, "8"):
        with pytest.raises(UserError, match=f"batch_size={invalid}; "):
            new().fit(TEXTS, LABELS, invalid)


@pytest.mark.parametrize("name", ["m.h5", "m.hdf5"])
def test_an_hdf5_file_is_refused(new, tmp_path, name):
    """Keras would write it, but not load it."""
    with pytest.raises(UserError, match=f"{name}: an HDF5 .* in .keras$"):
        new().save(tmp_path / name)
    assert not [*tmp_path.iterdir()]


def test_predict_goes_on_while_another_thread_fits(new):
    model, rows = new(), [probabilities(new())]
    thread = threading.Thread(
        target=model.fit, args=(TEXTS, LABELS), kwargs={**FIT, "epochs": 2}
    )
    thread.start()
    while thread.is_alive():
        rows.append(probabilities(model))
        thread.join(0.1)
    assert int(model.optimizer.iterations) == 16
    assert np.isfinite(rows).all() and len(rows) > 1


def test_the_network_is_traced_again_for_other_variables(new, monkeypatch):
    model, traced = new(), []
    encoder, call = model.network.get_layer("bert"), bert.Encoder.call

    def count(*inputs, **arguments):
        traced.append(tf.inside_function())
        return call(*inputs, **arguments)

    monkeypatch.setattr(bert.Encoder, "call", count)
    for texts in (TEXTS, TEXTS, SPAM[:1], [" ".join(TEXTS)]):
        model.predict(texts, verbose=0)
    model.predict_on_batch(HAM)
    assert traced == [True]
    encoder.enable_lora(2)
    for variable in encoder.trainable_variables:
        variable.assign(variable + 0.3)
    logits = model.network(model.tokenizer(HAM))["logits"]
    expected = tf.nn.softmax(logits)
    np.testing.assert_allclose(probabilities(model, HAM), expected, atol=1e-5)
    assert traced == [True, False, True]


@pytest.mark.usefixtures("eagerly")
def test_the_network_runs_eagerly_where_functions_do(new, monkeypatch):
    model, traced, call = new(), [], bert.Encoder.call

    def count(*inputs, **arguments):
        traced.append(tf.inside_function())
        return call(*inputs, **arguments)

    monkeypatch.setattr(bert.Encoder, "call", count)
    model.predict(TEXTS, verbose=0)
    assert {*traced} == {False}


def test_scikit_learn_is_told_what_to_use_instead(new):
    for ask in (
        clone,
        lambda x: cross_val_score(x, TEXTS, LABELS, scoring="accuracy"),
    ):
        with pytest.raises(UserError, match="call run_classifier.py --num_fo"):
            ask(new())


WEIGHTS = np.float32([label == "spam" for label in LABELS])
IDS = [["ham", "spam"].index(label) for label in LABELS]


@pytest.mark.usefixtures("eagerly")
def test_texts_and_labels_of_every_kind(fitted):
    """Only texts with a weight count; `predict` does not read the labels."""
    empty, expected = [""] * 64, probabilities(fitted)
    for texts in (
        (Frame(a=TEXTS), np.array(empty)),
        dataset((TEXTS, ["?"] * 64)).batch(3),
        dataset(((TEXTS, empty), [-1] * 64)).batch(64),
    ):
        found = probabilities(fitted, texts)
        np.testing.assert_allclose(found, expected, atol=1e-5)
    spam, *_ = fitted.evaluate(SPAM, ["spam"] * 4, verbose=0)
    for labelled in (
        (np.array(TEXTS), Frame(label=LABELS), 32, WEIGHTS),
        (dataset(((TEXTS, empty), IDS, WEIGHTS)).batch(8),),
        (dataset(([[x] for x in TEXTS], LABELS, WEIGHTS)).batch(9),),
    ):
        scores = fitted.evaluate(*labelled, return_dict=True)
        assert [*scores] == ["loss", "accuracy", "macro_f1"]
        assert [*scores.values()] == fitted.evaluate(*labelled, verbose=0)
        assert scores["loss"] == pytest.approx(spam, 1e-4)


@pytest.mark.usefixtures("eagerly")
def test_several_labels_of_a_dataset_are_names(new):
    model, names = new(multi_label=True), [["ham", "spam"], ["spam", "ham"]]
    examples = model._texts.examples(dataset((SPAM, names * 2)).batch(2))
    assert [x.label for x in examples] == [[1, 1]] * 4
    eggs = dataset((SPAM, [["ham", "spam"], ["ham", "eggs"]] * 2)).batch(2)
    with pytest.raises(
        UserError, match=r"^labels\[1\]: the label 'eggs'; expected one of ha"
    ):
        model.evaluate(eggs, verbose=0)


def test_weights_of_texts_are_those_of_a_batch(new):
    model = new()
    rows = model._training_rows(TEXTS, LABELS, WEIGHTS)
    of_lists, _ = model._batches(model._encoded(rows), 64, shuffle=False)
    of_dataset = model._texts.batches(
        *(dataset((TEXTS, LABELS, WEIGHTS)).batch(64), None, None),
        *(model._encoded_texts, model._lengths),
    )
    for batches in (of_lists, of_dataset.map(model._divide)):
        ((_, labels, found),) = batches.take(1)
        np.testing.assert_array_equal(found, WEIGHTS)
        np.testing.assert_array_equal(labels, IDS)


@pytest.mark.usefixtures("eagerly")
def test_the_seed_repeats(new):
    batches = dataset((TEXTS, LABELS)).batch(8)  # as the lists without shuffle
    models = [trained(new(), batches, None, 1) for _ in range(2)]
    assert int(models[0].optimizer.iterations) == 8
    for variables in zip(*(x.network.weights for x in models), strict=True):
        np.testing.assert_array_equal(*variables)


def test_arguments_of_fit(new, monkeypatch):
    """Those of a text class, and those that Keras gets."""
    model, given = new(), []
    monkeypatch.setattr(keras.Model, "fit", lambda *_, **x: given.append(x))
    for weights in ({"spam": 2.0, "ham": 0.5}, {1: 2.0}):
        model.fit(TEXTS, LABELS, 30, learning_rate=0.0, class_weight=weights)
    found = [x["class_weight"] for x in given]
    assert found == [{0: 0.5, 1: 2.0}, {0: 1.0, 1: 2.0}]
    assert model.optimizer._learning_rate.peak == 0
    model.fit(TEXTS, LABELS, steps_per_epoch=5)
    assert [x["steps_per_epoch"] for x in given] == [3, 3, 5]
    model.compile("adam")
    model.fit(TEXTS, LABELS, callbacks=[keras.callbacks.ReduceLROnPlateau()])
    with pytest.raises(UserError, match="the model is compiled; pass it to"):
        model.fit(TEXTS, LABELS, learning_rate=0.0)


def test_each_epoch_has_another_order_without_the_held_out_texts(
    new, monkeypatch
):
    model, epochs = new(), []
    texts = ["win " * i for i in range(15)]  # of 2 to 16 tokens

    def lengths(batches):
        parts = [np.sum(inputs["input_mask"], 1) for inputs, _ in batches]
        return np.concatenate(parts).tolist()

    def fit(_, batches, callbacks, steps_per_epoch, **given):
        found = [*batches.take(2 * steps_per_epoch)]
        halves = found[:steps_per_epoch], found[steps_per_epoch:]
        epochs.extend(map(lengths, halves))
        (validation,) = callbacks
        assert [x.text for x in validation._held_out] == texts[12:]

    monkeypatch.setattr(keras.Model, "fit", fit)
    for shuffle in (True, False):
        model.fit(
            texts,
            LABELS[:15],
            batch_size=4,
            epochs=2,
            validation_split=0.15,  # 12.75 of 15 for training
            shuffle=shuffle,
        )
    trained = [*range(2, 14)]
    assert epochs[0] != epochs[1]
    assert [sorted(x) for x in epochs[:2]] == [trained, trained]
    assert epochs[2:] == [trained, trained]


def test_validation_data_has_precedence_over_a_split(
    new, model_of_words, monkeypatch
):
    """As in Keras: no text is then held out of the training."""
    sizes = []

    def fit(_, batches, callbacks, steps_per_epoch, **given):
        sizes.append((steps_per_epoch, len(callbacks[0]._held_out)))

    monkeypatch.setattr(keras.Model, "fit", fit)
    both = {"batch_size": 1, "validation_split": 0.25}
    held_out = dataset((SPAM[:2], LABELS[:2])).batch(2)
    new().fit(TEXTS, LABELS, validation_data=(SPAM, LABELS[:4]), **both)
    new().fit(
        dataset((TEXTS, LABELS)).batch(1), validation_data=held_out, **both
    )
    words, tags = [["win"], ["free"]], [["O"], ["X"]]
    model_of_words.fit(
        words, tags, validation_data=(words[:1], tags[:1]), **both
    )
    assert sizes == [(64, 4), (None, 2), (2, 1)]


def test_xla_compiles_few_lengths(new, monkeypatch):
    model, batches = new(), []

    def fit(_, x, steps_per_epoch, **given):
        batches.extend(x.take(steps_per_epoch or -1))

    take = lambda _, *batch, **given: batches.append(batch)  # noqa: E731
    monkeypatch.setattr(keras.Model, "fit", fit)
    monkeypatch.setattr(keras.Model, "train_on_batch", take)
    for jit_compile in (False, True):
        model.compile("adam", jit_compile=jit_compile)
        batches.clear()
        model.fit(TEXTS, LABELS, 2, validation_split=0.25)
        model.fit(dataset((TEXTS, LABELS)).batch(2))
        model.train_on_batch(TEXTS[:2], LABELS[:2])
        assert len(batches) == 24 + 32 + 1
        lengths = {inputs["input_ids"].shape[1] for inputs, *_ in batches}
        assert lengths == ({16} if jit_compile else {8})


def assert_ids(labels, values, expected):
    """`expected` are ids, or a part of the message of an error."""
    if isinstance(expected, str):
        with pytest.raises(UserError, match=expected):
            label_encoder.ids(values, labels())
    else:
        assert label_encoder.ids(values, labels()).tolist() == expected


@pytest.mark.parametrize(
    ("labels", "values", "expected"),
    [
        ([0, 1], [[0, 1], [1], [0], []], [[1, 1], [0, 1], [1, 0], [0, 0]]),
        ([0, 1], np.array([[0, 1], [1, 0]]), [[0, 1], [1, 0]]),
        ([True, False], [[True, False], [False]], [[1, 1], [0, 1]]),
        ([1, 2, 3], [[1, 0, 1], [2, 3]], [[1, 0, 1], [0, 1, 1]]),
        (["1"], [[1], [0]], [[1], [0]]),
        (["a", "b", "c"], [[0, 1], [0]], [[1, 1, 0], [1, 0, 0]]),
    ],
)
def test_several_labels_that_look_like_truth_values(labels, values, expected):
    """Two names in a list, else a row of truth values."""
    names = label_encoder.names_of
    assert_ids(lambda: Labels(MULTI_LABEL, names(labels, 1)), values, expected)


@pytest.mark.parametrize(
    ("labels", "values", "expected"),
    [
        (np.array([1, 0]), [0, 1, np.int64(1), 1.0, "1"], [1, 0, 0, 0, 0]),
        ([1, 2, 3, 4, 5], [1, 5, 2], [0, 4, 1]),
        (np.array([10.0, 1.0, 0.0]), ["10", "1", "0"], [0, 1, 2]),
        (np.array([2.0, 0.5]), [0.5, 2, np.float32(2.0)], [1, 0, 0]),
        (np.array([True, False]), [False, np.True_, True], [1, 0, 0]),
        (["1", "0"], [0, 1, "0"], [1, 0, 1]),
        (["ham", "spam"], ["spam", 0, np.int32(1)], [1, 0, 1]),
        (["1", "01", "1.0"], ["1.0", "01", "1"], [2, 1, 0]),
        (["v1.0", "v1"], ["v1"], [1]),
        (["1", "01"], [1.0], "number 1.0 fits several classes; .* 1, 01, as"),
        (["0.5", ".5"], [np.float32(0.5)], "0.5. fits several classes"),
        ([1, 2], [0], "the label 0; expected one of 1, 2"),
        ([True, False], [1], "the label 1; expected one of True, False"),
        (["ham", "spam"], ["1"], "the label '1'; expected one of ham, spam"),
        (["ham", "spam"], [pandas.NA], "the label <NA>; expected one of ham"),
        ([1, 1.0], [], "two or more names, once"),
        ("io", [], "labels=.*io.*; expected two or more names, once"),
        ([1.0, float("nan")], [], "two or more names, once"),
        (["ham", None], [], "two or more names, once"),
        (["ham", ""], [], "labels=.*; expected two or more names, once"),
        (["ham", " "], [], "labels=.*; expected two or more names, once"),
        (
            {"ham", "spam"},
            [],
            "^labels is a set, which has no order; pass a list$",
        ),
        (
            ["ham", "spam"],
            frozenset(["ham"]),
            "^labels is a frozenset, which has no order",
        ),
    ],
)
def test_labels_that_are_numbers_are_values(labels, values, expected):
    names = label_encoder.names_of
    assert_ids(lambda: Labels(CLASSES, names(labels)), values, expected)


def test_one_name_is_enough_for_several_labels():
    for kind, message in ({}, "two"), ({"multi_label": True}, "one"):
        with pytest.raises(UserError, match=f"expected {message} or more nam"):
            label_encoder.chosen(
                [], None, **{"multi_label": False} | kind, regression=False
            )


@pytest.mark.long
def test_under_a_strategy_in_bfloat16(new):
    devices = [f"CPU:{i}" for i in range(2)]
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        with tf.distribute.MirroredStrategy(devices).scope():
            model = new()
        model.fit(TEXTS, LABELS, epochs=8, learning_rate=3e-3, **FIT)
    finally:
        keras.config.set_dtype_policy(policy)
    assert model.predict(SPAM, verbose=0)["label"] == ["spam"] * 4


def test_a_fine_tuned_model_brings_its_labels_and_its_head(tmp_path, capsys):
    path = str(tmp_path / "run")
    saved = library_files.run(tmp_path / "run")["output_weights"]
    names = ["low", "middle", "high"]
    task = {"kind": "classes", "labels": names, "max_seq_length": 7}
    checkpoint_files.write_task(path, task)
    for labels in (None, names):
        model = bert.TextClassifier(path, labels)
        assert model.labels.names == tuple(names) and model.max_length == 7
        head = model.network.get_layer("classifier").output_weights
        np.testing.assert_array_equal(head, saved)
    assert "head" not in capsys.readouterr().err
    for labels, kind in (
        (["a", "b", "c"], {}),
        (names, {"multi_label": True}),
        (None, {"regression": True}),
    ):
        model = bert.TextClassifier(path, labels, **kind)
        head = model.network.get_layer("classifier").output_weights.numpy()
        assert head.shape != saved.shape or (head != saved).any()
        (line,) = capsys.readouterr().err.splitlines()
        assert "a new head with random weights: the head of " in line
        assert f" of {path}/model.ckpt-7 is for classes low" in line
    with pytest.raises(
        UserError, match="trained with the labels: classes low, "
    ):
        bert.TextClassifier(path, names[::-1])
    (tmp_path / "run" / "task.json").unlink()
    with pytest.raises(UserError, match="no labels; pass their names"):
        bert.TextClassifier(path)


@pytest.mark.parametrize(
    ("labels", "kind", "to"),
    [
        (["ham", "spam"], {}, "google"),
        ([1], {"multi_label": True}, "huggingface"),
        (None, {"regression": True}, "google"),
    ],
)
def test_a_saved_folder_has_the_labels_and_the_length(
    tokenizer, labels, kind, to, tmp_path
):
    """Those of the model, not of a tokenizer that is given."""
    pair, folder = (bert.new_encoder(TINY), tokenizer), tmp_path / "saved"
    model = bert.TextClassifier(
        pair, labels, max_length=7, truncate="tail", **kind
    )
    bert.save(model, folder, tokenizer.with_max_length(5), to)
    again = bert.TextClassifier(str(folder))
    assert (again.max_length, again.tokenizer.max_length) == (7, 7)
    assert again.labels == model.labels
    assert again.long_texts == model.long_texts

    # A model of `bert.classifier` has those of the head that it starts from.
    encoder, tokenizer = bert.load_encoder(str(folder))
    same = bert.classifier(encoder, model.labels.size)
    bert.save(same, str(tmp_path / "b"), tokenizer, to)
    assert bert.TextClassifier(str(tmp_path / "b")).labels == model.labels
    for build, size in ((bert.classifier, 3), (bert.token_classifier, 2)):
        other = str(tmp_path / build.__name__)
        bert.save(build(encoder, size), other, tokenizer, to)
        with pytest.raises(UserError, match="no labels"):
            bert.TextClassifier(other)


@pytest.mark.parametrize("labels", [["ham", "spam"], ["LABEL_0", "LABEL_1"]])
def test_a_folder_of_transformers_has_the_length(tokenizer, labels, tmp_path):
    """Labels that transformers has numbered have to be given."""
    pair, folder = (bert.new_encoder(TINY), tokenizer), tmp_path / "saved"
    model = bert.TextClassifier(pair, labels, max_length=7)
    bert.save(model, folder, to="huggingface")
    (folder / "task.json").unlink()  # as transformers writes the folder
    given = None if labels[0] == "ham" else ["ham", "spam"]
    again = bert.TextClassifier(str(folder), given)
    assert again.labels.names == ("ham", "spam") and again.max_length == 7
    head, other = (x.network.get_layer("classifier") for x in (model, again))
    for one, same in zip(head.weights, other.weights, strict=True):
        np.testing.assert_array_equal(one, same)

    # As sentence-transformers writes the length.
    file = folder / "sentence_bert_config.json"
    file.write_text('{"max_seq_length": 5}')
    assert bert.TextClassifier(str(folder), given).max_length == 5


def test_transformers_is_told_to_keep_the_end_of_texts(tokenizer, tmp_path):
    pair, folder = (bert.new_encoder(TINY), tokenizer), tmp_path / "saved"
    model = bert.TextClassifier(pair, ["a", "b"], truncate="tail")
    bert.save(model, folder, to="huggingface")
    config = json.loads((folder / "tokenizer_config.json").read_text())
    assert config["truncation_side"] == "left"
    (folder / "task.json").unlink()
    again = bert.TextClassifier(str(folder))
    assert again.long_texts == model.long_texts


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((TEXTS, LABELS[1:]), "64 and 63 rows; expected as many labels as"),
        (([], []), "no texts; expected one or more"),
        (
            (["win"] * 3, ["ham", "spam", "spma"]),
            r"^labels\[2\]: the label 'spma'; expected one of ham, spam",
        ),
        ((["win"], [2]), "the label 2; expected one of ham, spam"),
        ((["win"], [[0, 1]]), "labels of shape .1, 2.; .* not one-hot rows"),
        ((Frame(a=SPAM, b=HAM), SPAM), "texts of shape .4, 2.; .* for pairs"),
        (((SPAM, HAM, HAM), SPAM), "3 columns of texts; expected one, or two"),
        ((TEXTS,), "y is None, x a list; expected .* a tf.data.Dataset"),
        ((TEXTS, LABELS, 0), "batch_size=0; expected 1 or more"),
        ((["win"], ["ham"], 1, [math.inf]), r"sample_weight\[0\] is inf; exp"),
        ((dataset(TEXTS).batch(2),), "x is a tf.data.Dataset of .* alone"),
        (
            (dataset((TEXTS, LABELS)).batch(2), None, None, [1.0]),
            "x is a tf.data.Dataset of .* alone",
        ),
        ((dataset(TEXTS).batch(2), LABELS), "y is .'ham.*|x is .* alone"),
        ((dataset((TEXTS, LABELS)),), r"tf.data.Dataset of .* \.batch\(32\)"),
        (
            (dataset(({"text": TEXTS}, LABELS)).batch(2),),
            r"tf.data.Dataset of .*'text'.*; map it to them",
        ),
        (
            (dataset((TEXTS, LABELS[:-1] + ["eggs"])).batch(2),),
            r"^labels\[1\]: the label 'eggs'; expected one of ham, spam$",
        ),
    ],
)
def test_mistakes_are_one_line(fitted, arguments, message):
    with pytest.raises(UserError, match=message):
        fitted.evaluate(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"validation_split": 1.0}, "validation_split=1.0 of 64 texts"),
        ({"validation_data": (TEXTS,)}, "y is None, x a list"),
        ({"class_weight": {"ham": math.nan}}, r"class_weight\[0\] is nan; exp"),
        ({"class_weight": {"eggs": 1.0}}, "^class_weight: the label 'eggs'"),
        ({"class_weight": "balanced"}, "='balanced'; expected a dict from c"),
        (
            {"callbacks": [keras.callbacks.ReduceLROnPlateau()]},
            "^ReduceLROnPlateau, and a schedule .*; call compile first",
        ),
        ({"class_weight": {}, "sample_weight": [1.0]}, "64 and 64 and 1 rows"),
        ({"distill_weight": 0.4}, "^distill_weight=0.4 without teacher; pass"),
        ({"distill_temperature": 1}, "^distill_temperature=1 without teacher"),
        (
            {"teacher": ("x", "y")},
            r"^teacher is a tuple; expected a TextClassi",
        ),
        (
            {"teacher": keras.Sequential()},
            "^teacher is a Sequential; expected a TextClassifier, or a path$",
        ),
        ({"epochs": 1.5}, "^epochs=1.5; expected an integer of 0 or more$"),
        ({"epochs": -1}, "^epochs=-1; expected an integer of 0 or more$"),
        ({"validation_split": math.nan}, "^validation_split=nan of 64 texts"),
        ({"validation_split": "a"}, "^validation_split=a of 64 texts; expect"),
        ({"learning_rate": math.nan}, "^learning_rate=nan; expected a finite"),
        ({"teacher": "x", "distill_weight": 2}, "^distill_weight=2; .* at mo"),
        (
            {"teacher": "x", "distill_weight": math.nan},
            "^distill_weight=nan; expected a finite number$",
        ),
        (
            {"teacher": "x", "distill_temperature": 0},
            "^distill_temperature=0; expected at least 0.01$",
        ),
        (
            {"teacher": "x", "distill_temperature": "2"},
            "^distill_temperature='2'; expected a number$",
        ),
    ],
)
def test_mistakes_of_fit(new, arguments, message):
    with pytest.raises(UserError, match=message):
        new().fit(TEXTS, LABELS, **arguments)


def test_a_rejected_training_keeps_the_decision(new):
    """Thresholds are reset by a step, not by a mistake."""
    model, decision = new(), PostProcessing(temperature=2.0)
    model._set_decision(decision)
    model.compile("sgd")
    eggs = dataset((TEXTS[:2], ["ham", "eggs"])).batch(2)
    for train, error in (
        (lambda: model.fit(TEXTS, LABELS, learning_rate=0.1), UserError),
        (lambda: model.fit(TEXTS, LABELS, epoch=2), TypeError),
        (lambda: model.fit(eggs, verbose=0), UserError),
        (lambda: model.train_on_batch(["win"], ["eggs"]), UserError),
    ):
        with pytest.raises(error):
            train()
        assert model.labels.decision == decision
        assert model.network.task["decision"]["temperature"] == 2.0

    model.train_on_batch(TEXTS[:2], LABELS[:2])
    assert model.labels.decision == PLAIN
    model._set_decision(decision)
    model.fit(TEXTS[:2], LABELS[:2], verbose=0)
    assert model.labels.decision == PLAIN
    assert "decision" not in model.network.task


def test_predict_has_all_values_of_the_task(fitted, monkeypatch):
    decode = TextClassification.decode

    def longer(*args):
        return [x | {"entropy": 0.5} for x in decode(*args)]

    monkeypatch.setattr(TextClassification, "decode", longer)
    found = fitted.predict(["win", "lunch"], verbose=0)
    assert [*found] == ["label", "probabilities", "entropy"]
    assert found["entropy"] == [0.5, 0.5]


def test_mistakes_of_predict(fitted):
    with pytest.raises(UserError, match="batch_size=0; expected 1 or more"):
        fitted.predict(["win"], 0)
    with pytest.raises(UserError, match=r"tf.data.Dataset of .* \.batch\(32"):
        fitted.predict(dataset(TEXTS))
    with pytest.raises(UserError, match="steps is given; expected batch_size"):
        fitted.predict(["win"], steps=1)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kind", [{}, {"multi_label": True}])
def test_outputs_that_are_not_finite_get_no_label(new, kind, value):
    """Also where the probabilities would be finite, as 0 for -inf."""
    model = new(**kind)
    model.network.get_layer("classifier").output_bias.assign([0.0, value])
    for predict in (model.predict, model.predict_on_batch):
        with pytest.raises(UserError, match=r"^the outputs for x\[0\] are not"):
            predict(SPAM)

    # Scripts and servers reject the numbers.
    predictor = model._predictor()
    (answer,) = predictor([{"text": "win"}])
    assert answer["label"] == ([] if kind else None)
    assert np.isnan([*answer["probabilities"].values()]).all()


def test_an_export_writes_over_nothing(fitted, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match="already exists; .* another folder"):
        fitted.export(tmp_path)
    assert [x.name for x in tmp_path.iterdir()] == ["mine.txt"]


def test_onnx_needs_packages_and_other_formats_are_unknown(fitted, tmp_path):
    for name, message in (
        ("onnx", "^format=onnx: missing packages: tf2onnx, .*onnx.txt$"),
        ("litert", "^format='litert'; expected tf_saved_model or onnx$"),
    ):
        with pytest.raises(UserError, match=message):
            fitted.export(tmp_path / "new", format=name)
    assert not (tmp_path / "new").exists()


def test_strings_in_a_batch(new):
    model = new()
    with pytest.raises(UserError, match='compile first, as in compile."adam"'):
        model.train_on_batch(SPAM, ["spam"] * 4)
    model.compile(keras.optimizers.Adam(3e-3))
    weights = {"ham": 0.0, "spam": 1.0}
    for _ in range(16):
        model.train_on_batch(
            TEXTS[:8], LABELS[:8], class_weight=weights, return_dict=True
        )
    answers = model.predict_on_batch((HAM, [""] * 4))
    assert answers["label"] == ["spam"] * 4
    expected = probabilities(model, HAM)
    np.testing.assert_allclose(answers["probabilities"], expected, atol=1e-6)
    assert model.predict_on_batch([])["label"] == []
    for texts, labels, message in (
        (["win"], ["eggs"], "the label 'eggs'; expected one of ham, spam"),
        (SPAM, LABELS[:3], "4 and 3 rows; expected as many labels as texts"),
    ):
        with pytest.raises(UserError, match=message):
            model.train_on_batch(texts, labels)


@pytest.mark.usefixtures("eagerly")
def test_f1_and_focal_loss_of_the_page_are_those_of_keras(new, tmp_path):
    page = pathlib.Path(__file__).parents[2] / "docs" / "library.md"
    (code,) = re.findall(
        r"^class F1.*?(?=^model =)", page.read_text(), re.M | re.S
    )
    (tmp_path / "classes.py").write_text(code)
    classes = runpy.run_path(str(tmp_path / "classes.py"), {"keras": keras})
    ids = np.array([label == "spam" for label in LABELS[:7]], int)
    rows = np.eye(2)[ids]

    # Keras' metrics: `TextClassifier.evaluate` has the metrics of the script.
    def evaluated(model, labels):
        examples = model._texts.examples(TEXTS[:7], labels)
        batches, steps = model._batches(
            model._encoded(examples), 7, shuffle=False
        )
        return keras.Model.evaluate(model, batches, steps=steps, verbose=0)

    # Seven texts: were ids taken for rows, shapes would not fit.
    model = new()
    loss = classes["Focal"](from_logits=True)
    model.compile("sgd", loss, [classes["F1"]("macro", name="f1")])
    found = evaluated(model, LABELS[:7])
    logits = np.log(probabilities(model, TEXTS[:7]))
    expected = keras.metrics.F1Score("macro")(rows, logits)
    focal = keras.losses.CategoricalFocalCrossentropy(from_logits=True)
    np.testing.assert_allclose(found, [focal(rows, logits), expected], 1e-5)

    model = new(multi_label=True)
    model.compile("sgd", keras.losses.BinaryFocalCrossentropy(from_logits=True))
    found, _ = evaluated(model, rows)
    focal = keras.losses.BinaryFocalCrossentropy()
    expected = focal(rows, probabilities(model, TEXTS[:7]))
    assert found == pytest.approx(float(expected), 1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": "sparse_categorical_crossentropy"}, "takes probabilities"),
        ({"metrics": ["AUC"]}, "^the metric 'AUC' takes probabilities; exp"),
        ({"weighted_metrics": [["AUC"]]}, "^the metric 'AUC' takes probabil"),
        (
            {"metrics": ["Precision"]},
            r"a metric cannot .*: Incomp.* int32 labels of shape .None.",
        ),
        (
            {"loss": keras.losses.CategoricalCrossentropy(from_logits=True)},
            r"same rank.*; expected .* logits of shape .None, 2.$",
        ),
    ],
)
def test_losses_and_metrics_of_other_labels_are_rejected(
    new, arguments, message
):
    with pytest.raises(UserError, match=message):
        new().compile("adam", **arguments)


@pytest.mark.parametrize("kind", [{"labels": [*"abc"]}, {"regression": True}])
def test_a_head_has_an_output_for_each_label(new, tokenizer, kind):
    with pytest.raises(UserError, match="a head of 2 outputs; expected [31], "):
        bert.TextClassifier((new().network, tokenizer), **kind)


@pytest.mark.parametrize("length", [0, 2, 17, 7.5, "7", True])
def test_the_length_fits_the_positions(tokenizer, length):
    message = f"max_length={length}; expected 3 to 16$"
    with pytest.raises(UserError, match=message):
        bert.TextClassifier(
            (bert.new_encoder(TINY), tokenizer), ["a", "b"], max_length=length
        )
