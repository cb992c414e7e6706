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
from bert.data.sequences import Encoded
from bert.inference.predictor import Predictor
from bert.modeling.formats import checkpoint_files
from bert.models import label_encoder
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
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    path.write_text("".join(f"{word}\n" for word in special + WORDS))
    return bert.Tokenizer(str(path), strip_accents=False)


@pytest.fixture(scope="module")
def new(tokenizer):
    def make(labels=("ham", "spam"), **arguments):
        keras.utils.set_random_seed(12345)  # of dropout
        pair = bert.new_encoder(TINY), tokenizer
        return bert.TextClassifier(pair, labels, max_length=16, **arguments)

    return make


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


def test_texts_and_names_go_in_and_labels_come_out(fitted):
    history = fitted.history.history
    assert history["val_accuracy"][-1] == 1.0
    assert history["val_loss"][-1] < 0.1 < history["val_loss"][0]
    schedule = fitted.optimizer._learning_rate
    # 48 of 64 texts are not held out: 6 batches of 8 in each of 8 epochs.
    assert (schedule.num_train_steps, schedule.num_warmup_steps) == (48, 4)
    assert schedule.peak == pytest.approx(3e-3)
    answers = fitted.predict(["lünch", *SPAM, "noon"], 2, verbose=0)
    assert answers["label"] == ["ham", *["spam"] * 4, "ham"]
    assert answers["probabilities"].shape == (6, 2)
    np.testing.assert_allclose(answers["probabilities"].sum(-1), 1.0, 1e-6)
    loss, accuracy, _ = fitted.evaluate(TEXTS, LABELS, verbose=0)
    assert accuracy == 1.0
    assert loss < 0.1
    model = fitted.network
    logits = model(fitted.tokenizer(TEXTS, max_length=16))["logits"]
    expected = tf.nn.softmax(logits)
    np.testing.assert_allclose(probabilities(fitted), expected, atol=1e-5)


def test_an_hdf5_file_is_refused(new, tmp_path):
    """Keras would write it, but not load it."""
    with pytest.raises(UserError, match="m.h5: an HDF5 file, .* in .keras$"):
        new().save(tmp_path / "m.h5")
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


@pytest.mark.usefixtures("eagerly")
def test_datasets_are_those_of_lists(new, fitted):
    batches = tf.data.Dataset.from_tensor_slices((TEXTS, LABELS)).batch(8)
    expected = probabilities(fitted)
    np.testing.assert_allclose(
        probabilities(fitted, batches), expected, atol=1e-5
    )
    weights = np.float32([label == "spam" for label in LABELS])
    loss, *_ = fitted.evaluate(
        np.array(TEXTS), np.array(LABELS), sample_weight=weights, verbose=0
    )
    spam, *_ = fitted.evaluate(SPAM, ["spam"] * 4, verbose=0)
    assert loss == pytest.approx(spam, 1e-4)
    ids = [["ham", "spam"].index(label) for label in LABELS]
    pairs = ((TEXTS, [""] * 64), ids, weights)
    same = tf.data.Dataset.from_tensor_slices(pairs).batch(8)
    assert fitted.evaluate(same, verbose=0)[0] == pytest.approx(loss, 1e-5)
    model = trained(new(), batches, None, 1)
    assert int(model.optimizer.iterations) == 8


def test_texts_without_weight_are_not_learned_and_the_seed_repeats(new):
    weights = np.float32([label == "spam" for label in LABELS])
    batches = dataset((TEXTS, LABELS, weights)).batch(8)
    models = [
        trained(new(), TEXTS, LABELS, 2, sample_weight=weights),
        trained(new(), TEXTS, LABELS, 2, sample_weight=weights),
        trained(new(), batches, None, 2),
    ]
    for model in models:
        assert model.predict(HAM, verbose=0)["label"] == ["spam"] * 4
    first, again, _ = (model.network.weights for model in models)
    for variable, same in zip(first, again, strict=True):
        np.testing.assert_array_equal(variable, same)


def test_a_table_of_one_column_is_a_column(new, fitted):
    expected = probabilities(fitted)
    for texts in (Frame(text=TEXTS), np.array(TEXTS)[:, np.newaxis]):
        np.testing.assert_array_equal(probabilities(fitted, texts), expected)
    pairs = probabilities(fitted, (Frame(a=SPAM), Frame(b=HAM)))
    np.testing.assert_array_equal(pairs, probabilities(fitted, (SPAM, HAM)))
    columns = Frame(text=TEXTS), Frame(label=LABELS)
    assert fitted.evaluate(*columns, verbose=0)[1] == 1.0
    rows = dataset(([[x] for x in TEXTS], [[x] for x in LABELS])).batch(8)
    assert fitted.evaluate(rows, verbose=0)[1] == 1.0
    model = new(multi_label=True)
    labels = Frame(ham=[0, 1, 0, 0], spam=[1, 1, 0, 0])
    names = [["spam"], ["ham", "spam"], [], []]
    assert model.evaluate(SPAM, labels, verbose=0) == model.evaluate(
        SPAM, names, verbose=0
    )
    eggs = dataset((SPAM, [["ham", "spam"], ["ham", "eggs"]] * 2)).batch(2)
    with pytest.raises(
        UserError, match=r"^labels\[1\]: the label 'eggs'; expected one of ha"
    ):
        model.evaluate(eggs, verbose=0)


def test_a_dataset_of_unknown_labels_is_predicted(fitted):
    expected = probabilities(fitted, (SPAM, HAM))
    for labels in ([-1] * 4, ["?"] * 4):
        batches = dataset(((SPAM, HAM), labels)).batch(3)
        found = probabilities(fitted, batches)
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_arguments_of_fit(new, monkeypatch):
    """Class weights by name, and a learning rate of zero."""
    model, given = new(), []
    monkeypatch.setattr(keras.Model, "fit", lambda *_, **x: given.append(x))
    for weights in ({"spam": 2.0, "ham": 0.5}, {1: 2.0}):
        model.fit(TEXTS, LABELS, learning_rate=0.0, class_weight=weights)
    found = [x["class_weight"] for x in given]
    assert found == [{0: 0.5, 1: 2.0}, {0: 1.0, 1: 2.0}]
    assert model.optimizer._learning_rate.peak == 0
    model.compile("adam")
    with pytest.raises(UserError, match="the model is compiled; pass it to"):
        model.fit(TEXTS, LABELS, learning_rate=0.0)


def test_each_epoch_has_another_order_without_the_held_out_texts(
    new, monkeypatch
):
    model, epochs = new(), []
    rows = [(list(range(i + 1)),) * 2 for i in range(16)]  # all differ
    encode = lambda texts, *_: [Encoded([rows[int(x)]]) for x in texts]  # noqa: E731
    monkeypatch.setattr(model.tokenizer, "encode_texts", encode)

    def lengths(batches):
        parts = [np.sum(inputs["input_mask"], 1) for inputs, _ in batches]
        return np.concatenate(parts).tolist()

    def fit(_, batches, callbacks, steps_per_epoch, **given):
        found = [*batches.take(2 * steps_per_epoch)]
        halves = found[:steps_per_epoch], found[steps_per_epoch:]
        epochs.extend(map(lengths, halves))
        (validation,) = callbacks
        assert [x.text for x in validation._held_out] == [
            *"12 13 14 15".split()
        ]

    monkeypatch.setattr(keras.Model, "fit", fit)
    for shuffle in (True, False):
        model.fit(
            [str(i) for i in range(16)],
            LABELS[:16],
            batch_size=4,
            epochs=2,
            validation_split=0.2,  # 12.8 of 16 for training
            shuffle=shuffle,
        )
    trained = list(range(1, 13))
    assert epochs[0] != epochs[1]
    assert [sorted(x) for x in epochs[:2]] == [trained, trained]
    assert epochs[2:] == [trained, trained]


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


@pytest.mark.parametrize(
    ("labels", "values", "expected"),
    [
        ([0, 1], [[0, 1], [1], [0], []], [[1, 1], [0, 1], [1, 0], [0, 0]]),
        ([0, 1], np.array([[0, 1], [1, 0]]), [[0, 1], [1, 0]]),
        ([0, 1], Frame(no=[0, 1], yes=[1, 1]), "labels of .'no', 'yes'."),
        ([True, False], [[True, False], [False]], [[1, 1], [0, 1]]),
        ([1, 2, 3], [[1, 0, 1], [2, 3]], [[1, 0, 1], [0, 1, 1]]),
        (["1"], [[1], [0]], [[1], [0]]),
    ],
)
def test_several_labels_that_look_like_truth_values(
    new, labels, values, expected
):
    """Two names in a list, else a row of truth values."""
    labels = new(labels, multi_label=True).labels
    if isinstance(expected, str):
        with pytest.raises(UserError, match=expected):
            label_encoder.ids(values, labels)
    else:
        assert label_encoder.ids(values, labels).tolist() == expected


@pytest.mark.parametrize(
    ("labels", "values", "expected"),
    [
        (np.array([1, 0]), [0, 1, np.int64(1), 1.0, "1"], [1, 0, 0, 0, 0]),
        ([1, 2, 3, 4, 5], [1, 5, 2], [0, 4, 1]),
        (np.array([2.0, 0.5]), [0.5, 2, np.float32(2.0)], [1, 0, 0]),
        (np.array([True, False]), [False, np.True_, True], [1, 0, 0]),
        (["1", "0"], [0, 1, "0"], [1, 0, 1]),
        (["ham", "spam"], ["spam", 0, np.int32(1)], [1, 0, 1]),
        (["1", "01", "1.0"], ["1.0", "01", "1"], [2, 1, 0]),
        (["1", "01"], [1.0], "number 1.0 fits several classes; .* 1, 01, as"),
        (["0.5", ".5"], [np.float32(0.5)], "0.5. fits several classes"),
        ([1, 2], [0], "the label 0; expected one of 1, 2"),
        ([True, False], [1], "the label 1; expected one of True, False"),
        (["ham", "spam"], ["1"], "the label '1'; expected one of ham, spam"),
        (["ham", "spam"], [pandas.NA], "the label <NA>; expected one of ham"),
        ([1, 1.0], [], "two or more names, once"),
        ([1.0, float("nan")], [], "two or more names, once"),
        (["ham", None], [], "two or more names, once"),
    ],
)
def test_labels_that_are_numbers_are_values(new, labels, values, expected):
    if isinstance(expected, str):
        with pytest.raises(UserError, match=expected):
            label_encoder.ids(values, new(labels).labels)
    else:
        ids = label_encoder.ids(values, new(labels).labels)
        assert ids.tolist() == expected


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
        ([1, 0], {"multi_label": True}, "huggingface"),
        (None, {"regression": True}, "google"),
    ],
)
def test_a_saved_folder_has_the_labels(new, labels, kind, to, tmp_path):
    model = new(labels, **kind)
    bert.save(model.network, str(tmp_path / "a"), model.tokenizer, to)
    again = bert.TextClassifier(str(tmp_path / "a"))
    assert again.labels == model.labels
    logits = again.network(again.tokenizer(HAM))["logits"]
    expected = model.network(model.tokenizer(HAM))["logits"]
    np.testing.assert_array_equal(logits, expected)
    # A model of `bert.classifier` has those of the head that it starts from.
    encoder, tokenizer = bert.load_encoder(str(tmp_path / "a"))
    same = bert.classifier(encoder, model.labels.size)
    bert.save(same, str(tmp_path / "b"), tokenizer, to)
    assert bert.TextClassifier(str(tmp_path / "b")).labels == model.labels
    for build, size in ((bert.classifier, 3), (bert.token_classifier, 2)):
        folder = str(tmp_path / build.__name__)
        bert.save(build(encoder, size), folder, tokenizer, to)
        with pytest.raises(UserError, match="no labels"):
            bert.TextClassifier(folder)


def test_a_head_without_names_keeps_its_length(new, tokenizer, tmp_path):
    """Labels that transformers has numbered have to be given."""
    pair, folder = (new().network, tokenizer), tmp_path / "saved"
    labels = ["LABEL_0", "LABEL_1"]
    model = bert.TextClassifier(pair, labels, max_length=7)
    bert.save(model, folder, to="huggingface")
    again = bert.TextClassifier(str(folder), ["ham", "spam"])
    assert again.max_length == 7
    logits = again.network(tokenizer(HAM))["logits"]
    expected = model.network(tokenizer(HAM))["logits"]
    np.testing.assert_array_equal(logits, expected)


def test_weights_that_are_not_finite_are_refused(new, tmp_path):
    """Also of a token that the check of one sequence does not have."""
    model = new()
    embeddings = model.network.get_layer("bert").get_layer("embeddings")
    words = embeddings.word_embeddings
    values = np.array(words)
    values[model.tokenizer.vocab["free"], 0] = np.nan
    words.assign(values)
    bert.save(model, tmp_path / "saved")
    with pytest.raises(UserError, match="word_embeddings: NaN or infinite"):
        Predictor.open(str(tmp_path / "saved"), "keras")


@pytest.mark.parametrize("to", ["google", "huggingface"])
def test_a_saved_model_keeps_its_length(new, tokenizer, to, tmp_path):
    """It is the argument of `bert.save` as well as its network."""
    pair, folder = (new().network, tokenizer), tmp_path / "saved"
    model = bert.TextClassifier(
        pair, ["ham", "spam"], max_length=7, truncate="tail"
    )
    bert.save(model, folder, to=to)
    again = bert.TextClassifier(str(folder))
    assert (again.max_length, again.tokenizer.max_length) == (7, 7)
    assert again.labels == model.labels
    assert again.long_texts == model.long_texts
    if to == "huggingface":
        config = json.loads((folder / "tokenizer_config.json").read_text())
        assert config["truncation_side"] == "left"
        (folder / "task.json").unlink()  # as transformers writes the folder
        again = bert.TextClassifier(str(folder))
        assert again.long_texts == model.long_texts

        # As sentence-transformers writes the length.
        file = folder / "sentence_bert_config.json"
        file.write_text('{"max_seq_length": 5}')
        assert bert.TextClassifier(str(folder)).max_length == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((TEXTS, LABELS[1:]), "64 and 63 rows; expected as many labels as"),
        (([], []), "no texts; expected one or more"),
        (([1.0], ["ham"]), r"texts\[0\] is 1.0; expected a str"),
        (
            (["win"] * 3, ["ham", "spam", "spma"]),
            r"^labels\[2\]: the label 'spma'; expected one of ham, spam",
        ),
        ((["win"], [2]), "the label 2; expected one of ham, spam"),
        ((["win"], [None]), "the label None; expected one of ham, spam"),
        ((["win"], [[0, 1]]), "labels of shape .1, 2.; .* not one-hot rows"),
        ((["win"], 1), "labels is 1; expected a list, or a column"),
        ((Frame(a=SPAM, b=HAM), SPAM), "texts of shape .4, 2.; .* for pairs"),
        (({"text": SPAM}, SPAM), "texts is {'text': .* a list, or a column"),
        (((SPAM, HAM, HAM), SPAM), "3 columns of texts; expected one, or two"),
        ((TEXTS,), "y is None, x a list; expected .* a tf.data.Dataset"),
        ((iter(TEXTS),), "y is None, x a list_iterator; .* a tf.data.Dataset"),
        ((TEXTS, LABELS, 0), "batch_size=0; expected 1 or more"),
        ((TEXTS, LABELS, 2.5), "batch_size=2.5; expected 1 or more"),
        (
            (["win"], ["ham"], 1, [math.inf]),
            r"sample_weight\[0\] is inf; expected a finite number",
        ),
        ((dataset(TEXTS).batch(2),), "x is a tf.data.Dataset of .* alone"),
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
        (
            {"class_weight": {"ham": math.nan, "spam": 1.0}},
            r"class_weight\[0\] is nan; expected a finite number",
        ),
        ({"class_weight": {"eggs": 1.0}}, "^class_weight: the label 'eggs'"),
        ({"class_weight": "balanced"}, "='balanced'; expected a dict from c"),
        (
            {"callbacks": [keras.callbacks.ReduceLROnPlateau()]},
            "^ReduceLROnPlateau, and a schedule .*; call compile first",
        ),
        ({"class_weight": {}, "sample_weight": [1.0]}, "64 and 64 and 1 rows"),
    ],
)
def test_mistakes_of_fit(new, arguments, message):
    with pytest.raises(UserError, match=message):
        new().fit(TEXTS, LABELS, **arguments)


def test_mistakes_of_predict(fitted):
    with pytest.raises(UserError, match=r"^texts\[1\] is None; expected a str"):
        fitted.predict(["win", None])
    with pytest.raises(UserError, match="batch_size=0; expected 1 or more"):
        fitted.predict(["win"], 0)
    with pytest.raises(UserError, match=r"tf.data.Dataset of .* \.batch\(32"):
        fitted.predict(dataset(TEXTS))
    with pytest.raises(UserError, match="steps is given; expected batch_size"):
        fitted.predict(["win"], steps=1)


@pytest.mark.parametrize("value", [math.nan, None, math.inf])
def test_numbers_are_finite(new, value):
    model = new(None, regression=True)
    message = rf"labels\[1\] is {value}; expected a finite number"
    for y in ([1.0, value], [[1.0], [value]]):
        with pytest.raises(UserError, match=message):
            model.fit(["win", "lunch"], y)
    model.evaluate(["win", "lunch"], [[1.0], [2.0]], verbose=0)


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
        (["win", None], ["ham", "spam"], r"texts\[1\] is None; expected a str"),
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


def test_mistakes_of_names(new):
    with pytest.raises(UserError, match="labels=.*io.*; expected two or more"):
        new(labels="io")
    with pytest.raises(UserError, match="labels is 2; expected a list"):
        new(labels=2)
    with pytest.raises(UserError, match="two or more names"):
        new(labels=["ham", "ham"])
    with pytest.raises(UserError, match="max_length=17; expected 3 to 16"):
        bert.TextClassifier(
            (bert.new_encoder(TINY), new().tokenizer), ["a", "b"], max_length=17
        )
