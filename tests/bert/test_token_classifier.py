"""bert.TokenClassifier: words and tags of any kind in, tagged words out."""

import keras
import numpy as np
import pandas
import pyarrow
import pytest
import tensorflow as tf

import bert
from bert.common.errors import UserError
from tests.helpers import trained

BIO = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
WORDS = [["mr", "Anna", "Smithson", "sees"], [], ["in", "paris"]]
TAGS = [["O", "B-PER", "I-PER", "O"], [], ["O", "B-LOC"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ner")
    trained.write_model(folder)
    return str(folder)


@pytest.fixture(scope="module")
def model(folder):
    return bert.TokenClassifier(folder, BIO)


NUMBERS = [[0, 3, 4, 0], [], [0, 1]]
IOBES = [["O", "B-PER", "E-PER", "O"], [], ["O", "S-LOC"]]


@pytest.mark.parametrize(
    ("words", "tags"),
    [
        (np.array([*map(np.array, WORDS)], object), np.array(NUMBERS, object)),
        (map(tuple, WORDS), ([np.int64(y) for y in x] for x in NUMBERS)),
        (pandas.Series(WORDS), pandas.DataFrame({"tags": NUMBERS})),
        (pyarrow.chunked_array([WORDS]), pyarrow.array(TAGS)),
        (WORDS, IOBES),
        (WORDS, [["O", "I-PER", "I-PER", "O"], [], ["O", "I-LOC"]]),
    ],
)
def test_columns_of_every_kind(model, words, tags):
    examples = model._examples(words, tags)
    assert [x.words for x in examples] == WORDS
    assert [x.labels for x in examples] == TAGS


@pytest.mark.parametrize(
    ("labels", "names", "tags", "expected"),
    [
        (["S-X", "B-X", "O"], ["O", "B-X", "I-X"], [0, 2], ["B-X", "O"]),
        (["B-X", "I-X", "O"], ["B-X", "I-X", "O"], [2, "B-X"], ["O", "B-X"]),
        (["B", "I", "O"], ["B", "I", "O"], [1, "S"], ["B", "B"]),
        ([7, 9], ["7", "9"], [9, "7"], ["9", "7"]),
        (["NOUN", "VERB"], ["NOUN", "VERB"], [1, "NOUN"], ["VERB", "NOUN"]),
    ],
)
def test_tags_are_names_or_numbers(folder, labels, names, tags, expected):
    model = bert.TokenClassifier(folder, labels)
    assert model.labels.names == tuple(names)
    clone = bert.TokenClassifier.from_config(model.get_config())
    for one in (model, clone):
        assert one._examples([["a", "b"]], [tags])[0].labels == expected


def test_a_fine_tuned_model_keeps_its_windows(folder, tmp_path):
    sizes = {"max_length": 11, "doc_stride": 2, "seed": 7}
    model = bert.TokenClassifier(folder, BIO, **sizes)
    bert.save(model.network, str(tmp_path / "saved"), model.tokenizer)
    path = str(tmp_path / "saved")
    again = bert.TokenClassifier(path)
    clone = bert.TokenClassifier.from_config(model.get_config())
    assert {name: getattr(clone, name) for name in sizes} == sizes
    assert (again.max_length, again.doc_stride) == (11, 2)
    words = ["paris", "Anna"] * 9
    windows = [x._task().encode([{"words": words}]) for x in (again, model)]
    assert windows[0] == windows[1] and len(windows[0][0].sequences) > 1
    assert bert.TokenClassifier(path, doc_stride=0).doc_stride == 0
    assert bert.TokenClassifier(path, max_length=5).doc_stride == 1
    with pytest.raises(UserError, match="doc_stride=5; expected 0 to 4"):
        bert.TokenClassifier(path, doc_stride=5)


def test_labels_are_valid(folder):
    """A model that continues entities that it has not begun."""
    model = bert.TokenClassifier(folder, BIO)
    model.network.get_layer("ner").output_bias.assign([0, 0, 0, 0, 99.0])
    expected = model.predict(WORDS, verbose=0)["labels"]
    assert expected == [["B-PER", *["I-PER"] * 3], [], ["B-PER", "I-PER"]]


@pytest.mark.usefixtures("eagerly")
def test_callbacks_see_the_scores_of_an_epoch(folder):
    """At a rate of 0 the second epoch is not better than the first."""
    model = bert.TokenClassifier(folder, BIO)
    history = model.fit(
        *(WORDS, TAGS),
        epochs=5,
        learning_rate=0.0,
        validation_split=0.5,
        callbacks=[keras.callbacks.EarlyStopping("val_f1", mode="max")],
        verbose=0,
    )
    assert history.epoch == [0, 1]


@pytest.mark.parametrize(
    ("words", "tags", "message"),
    [
        (["Anna sees"], [["O", "O"]], r"words\[0\] is 'Anna .* a list$"),
        ("Anna sees", ["O"], "words is 'Anna sees'; expected a list, or a c"),
        (
            tf.data.Dataset.from_tensors("Anna sees"),
            [["O", "O"]],
            r"words\[0\] is <tf.Tensor: .* a list$",
        ),
        ([["a", None]], [["O", "O"]], r"words\[0\]\[1\] is None; .* a str"),
        ([["a"]], [["O", "O"]], r"words\[0\] has 1, tags\[0\] 2; expected a"),
        ([["a"]], [], "words of 1 sentences, tags of 0"),
        (
            [["a"], ["a", "b"]],
            [["O"], ["O", "B-ORG"]],
            r"^tags\[1\]\[1\]: the label 'B-ORG'; expected one of O, B-LOC",
        ),
        ([["a"]], [["person"]], r"^tags\[0\]\[0\]: the label 'person'; exp"),
        ([["a"]], [[5]], "the label 5; expected one of O, B-LOC"),
        ([["a"]], [[None]], "the label None; expected one of O, B-LOC"),
        ([], [], "no texts; expected one or more"),
        ([[]], [[]], "no words( or answers in 1 texts)?; expected"),
        ([["a"]], None, "y is None; expected the labels of the texts"),
    ],
)
def test_mistakes_are_one_line(model, words, tags, message):
    for call in (model.fit, model.evaluate):
        with pytest.raises(UserError, match=message):
            call(words, tags, verbose=0)


@pytest.mark.parametrize("name", ["class_weight", "sample_weight"])
def test_words_have_no_weights(model, name):
    given = {name: {"O": 2.0} if name == "class_weight" else [1.0] * 3}
    message = f"^{name} is given; expected no weights: each word or answer"
    with pytest.raises(UserError, match=message):
        model.fit(WORDS, TAGS, **given)
    compiled = bert.TokenClassifier((model.network, model.tokenizer), BIO)
    compiled.compile("sgd")
    with pytest.raises(UserError, match=message):
        compiled.train_on_batch(WORDS, TAGS, **given)


def test_a_stride_is_an_integer(folder):
    with pytest.raises(UserError, match="^doc_stride=1.5; expected 0 to"):
        bert.TokenClassifier(folder, BIO, doc_stride=1.5)


def test_mistakes_of_labels_and_of_batches(model, folder, tmp_path, capsys):
    with pytest.raises(UserError, match="no labels; pass the names of the tag"):
        bert.TokenClassifier(folder)
    with pytest.raises(UserError, match="two or more names, once"):
        bert.TokenClassifier(folder, ["O", "O"])
    with pytest.raises(UserError, match="compile first"):
        model.train_on_batch(WORDS, TAGS)
    bert.save(model.network, str(tmp_path / "a"), model.tokenizer)
    again = bert.TokenClassifier(str(tmp_path / "a"))
    assert again.labels == model.labels
    with pytest.raises(
        UserError, match="trained with the labels: entities O, "
    ):
        bert.TokenClassifier(str(tmp_path / "a"), [*BIO[1:], "O"])
    capsys.readouterr()
    bert.TokenClassifier(str(tmp_path / "a"), ["o", "b-X"])
    err = capsys.readouterr().err
    assert (
        "a new head with random weights: " in err
        and "the label 'b-X' is not read as" in err
    )
