"""bert.TokenClassifier: words and tags of any kind in, tagged words out."""

import json
import pathlib
import random
import subprocess
import sys

import keras
import numpy as np
import pandas
import pyarrow
import pytest
import tensorflow as tf

import bert
import run_ner
from bert.common.errors import UserError
from bert.inference.predictor import Predictor
from bert.modeling import task_models
from tests.helpers import model_files, names, run_folders

S, H = 13, 16
BIO = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
WORDS = [["mr", "Anna", "Smithson", "sees"], [], ["in", "paris"]]
TAGS = [["O", "B-PER", "I-PER", "O"], [], ["O", "B-LOC"]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, and files of the grammar."""
    folder = tmp_path_factory.mktemp("ner")
    sizes = {"hidden_size": H, "num_attention_heads": 2}
    config = model_files.write_sizes(
        folder,
        "bert_config.json",
        names.vocabulary(),
        **sizes,
        num_hidden_layers=1,
        max_position_embeddings=S,
        initializer_range=0.1,
    )
    tokenizer = bert.Tokenizer(str(folder / "vocab.txt"))
    bert.save(bert.new_encoder(config), str(folder / "model"), tokenizer)
    rng = random.Random(1)
    for name, count in (("train", 211), ("eval", 31)):
        sentences = [names.sentence(rng, 1 + i % 5) for i in range(count)]
        names.write(folder / f"{name}.txt", sentences)
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return bert.TokenClassifier(str(folder / "model"), BIO)


def read(path):
    """Words and tags as most people have them: lists of lists."""
    words, tags = [], []
    for block in path.read_text().split("\n\n"):
        rows = [x.split() for x in block.splitlines() if "-DOC" not in x]
        if rows:
            words.append([row[0] for row in rows])
            tags.append([row[-1] for row in rows])
    return words, tags


LOAD = """
import bert, keras, json, sys
model = keras.saving.load_model(sys.argv[1])
answers = model.predict(json.load(sys.stdin), verbose=0)
json.dump([model.labels.names, answers["labels"]], sys.stdout)
"""


def loaded(path, words):
    """Labels and answers of a process that imports only these two."""
    done = subprocess.run(
        [sys.executable, "-c", LOAD, path],
        input=json.dumps(words),
        capture_output=True,
        text=True,
        cwd=pathlib.Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def exported(path, sentences):
    """Predictions of an export for texts that are split at white space."""
    predictor = Predictor.open(str(path))
    texts = [{"text": " ".join(words)} for words in sentences]
    return predictor([predictor.parse(text, "words") for text in texts])


@pytest.mark.slow
def test_class_and_script_are_equal(folder, tmp_path, run_script, monkeypatch):
    monkeypatch.setattr(task_models, "POOLED_DROPOUT", 0.0)
    model = bert.TokenClassifier(str(folder / "model"), BIO[::-1], seed=1)
    assert model.labels.names == tuple(BIO[::-1])
    model = bert.TokenClassifier(
        str(folder / "model"), BIO, doc_stride=2, seed=1
    )
    words, tags = read(folder / "train.txt")
    size = len(model._training_columns(words, tags, None)[0])
    assert size > len(words)  # windows of long sentences
    code, _, err = run_script(
        run_ner,
        *("--do_train", "--do_eval", "--do_predict"),
        **{f"{x}_file": folder / f"{x}.txt" for x in ("train", "eval")},
        predict_file=folder / "eval.txt",
        init_checkpoint=folder / "model",
        output_dir=tmp_path / "run",
        max_seq_length=S,
        doc_stride=2,
        train_batch_size=size,
        learning_rate=1e-2,
        num_train_epochs=16,
        random_seed=1,
    )
    assert code == 0, err
    history = model.fit(  # the same steps in one epoch, to validate once
        *(words * 16, tags * 16, size),
        learning_rate=1e-2,
        shuffle=False,
        validation_data=read(folder / "eval.txt"),
        verbose=0,
    ).history
    scores = model.evaluate(*read(folder / "eval.txt"), verbose=0)
    script = run_folders.results(tmp_path / "run")
    assert scores["f1"] > 0.5
    assert history["val_f1"][-1] == scores["f1"]
    for name, value in scores.items():
        assert value == pytest.approx(script[f"eval_{name}"], 1e-3), name

    # The fine-tuned model answers as the script, the export and the file do.
    model = bert.TokenClassifier(str(tmp_path / "run"))
    words, _ = read(folder / "eval.txt")
    answers = model.predict(words, verbose=0)
    assert answers["labels"] == read(tmp_path / "run" / "predictions.conll")[1]
    model.save(tmp_path / "words.keras")
    path = str(tmp_path / "words.keras")
    assert loaded(path, words) == [BIO, answers["labels"]]
    model.export(tmp_path / "export")
    for i, found in enumerate(exported(tmp_path / "export", words)):
        kinds = [kind for *_, kind in answers["entities"][i]]
        assert [x["type"] for x in found["entities"]] == kinds
        probabilities = [x["probability"] for x in found["words"]]
        expected = answers["probabilities"][i]
        np.testing.assert_allclose(probabilities, expected, atol=1e-5)


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
        ([7, 9], ["7", "9"], [9, "7"], ["9", "7"]),
        (["NOUN", "VERB"], ["NOUN", "VERB"], [1, "NOUN"], ["VERB", "NOUN"]),
    ],
)
def test_tags_are_names_or_numbers(folder, labels, names, tags, expected):
    model = bert.TokenClassifier(str(folder / "model"), labels)
    assert model.labels.names == tuple(names)
    assert model._examples([["a", "b"]], [tags])[0].labels == expected


def test_a_fine_tuned_model_keeps_its_windows(folder, tmp_path):
    path = str(folder / "model")
    model = bert.TokenClassifier(path, BIO, max_length=11, doc_stride=2)
    bert.save(model.network, str(tmp_path / "saved"), model.tokenizer)
    path = str(tmp_path / "saved")
    again = bert.TokenClassifier(path)
    assert (again.max_length, again.doc_stride) == (11, 2)
    words = ["paris", "Anna"] * 9
    windows = [x._task().encode([{"words": words}]) for x in (again, model)]
    assert windows[0] == windows[1] and len(windows[0][0].rows) > 1
    assert bert.TokenClassifier(path, doc_stride=0).doc_stride == 0
    assert bert.TokenClassifier(path, max_length=5).doc_stride == 1
    with pytest.raises(UserError, match="doc_stride=5; expected 0 to 4"):
        bert.TokenClassifier(path, doc_stride=5)


def test_the_export_gives_valid_labels(folder, tmp_path):
    """A model that continues entities that it has not begun."""
    model = bert.TokenClassifier(str(folder / "model"), BIO)
    model.network.get_layer("ner").output_bias.assign([0, 0, 0, 0, 9.0])
    expected = model.predict(WORDS, verbose=0)["labels"]
    assert expected == [["B-PER", *["I-PER"] * 3], [], ["B-PER", "I-PER"]]
    model.export(tmp_path / "export")
    found = exported(tmp_path / "export", WORDS)
    assert [[x["label"] for x in y["words"]] for y in found] == expected


def test_callbacks_see_the_scores_of_an_epoch(folder):
    """At a rate of 0 the second epoch is not better than the first."""
    model = bert.TokenClassifier(str(folder / "model"), BIO)
    for held_out in (
        {"validation_data": (WORDS, TAGS)},
        {"validation_split": 0.5},
    ):
        history = model.fit(
            *(WORDS, TAGS),
            epochs=5,
            learning_rate=0.0,
            **held_out,
            callbacks=[keras.callbacks.EarlyStopping("val_f1", mode="max")],
            verbose=0,
        )
        assert history.epoch == [0, 1]


def test_strange_texts_and_single_batches(model, folder):
    words = [["", "\u200b", "\ud800", "北"], [], ["a." * 97] * 97, ["mr"]]
    answers = model.predict(words, 2, verbose=0)
    assert [*map(len, answers["labels"])] == [4, 0, 97, 1]
    at_once = model.predict_on_batch(words)
    assert at_once["labels"] == answers["labels"]
    assert model.predict([], verbose=0)["entities"] == []
    assert model.predict_on_batch([[]])["probabilities"] == [[]]

    model = bert.TokenClassifier(str(folder / "model"), BIO)
    model.compile(keras.optimizers.Adam(1e-2))
    losses = [model.train_on_batch(WORDS, TAGS)[0] for _ in range(32)]
    assert losses[-1] < 0.1 < losses[0]
    assert model.predict(WORDS, verbose=0)["labels"] == TAGS


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
        ([[]], [[]], "no (texts|words); expected one or more"),
        ([["a"]], None, "y is None; expected the labels of the texts"),
    ],
)
def test_mistakes_are_one_line(model, words, tags, message):
    for call in (model.fit, model.evaluate):
        with pytest.raises(UserError, match=message):
            call(words, tags, verbose=0)


def test_mistakes_of_labels_and_of_batches(model, folder, tmp_path, capsys):
    path = str(folder / "model")
    with pytest.raises(UserError, match="no labels; pass the names of the tag"):
        bert.TokenClassifier(path)
    with pytest.raises(UserError, match="two or more names, once"):
        bert.TokenClassifier(path, ["O", "O"])
    with pytest.raises(UserError, match="compile first"):
        model.train_on_batch(WORDS, TAGS)
    bert.save(model.network, str(tmp_path / "a"), model.tokenizer)
    again = bert.TokenClassifier(str(tmp_path / "a"))
    assert again.labels == model.labels
    with pytest.raises(UserError, match="the order of training, entities O, "):
        bert.TokenClassifier(str(tmp_path / "a"), [*BIO[1:], "O"])
    capsys.readouterr()
    bert.TokenClassifier(str(tmp_path / "a"), ["o", "b-X"])
    err = capsys.readouterr().err
    assert (
        "a new head with random weights: " in err
        and "the label 'b-X' is not read as" in err
    )
