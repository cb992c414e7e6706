"""The first weights of a head, from a frozen encoder."""

import keras
import numpy as np
import pytest

from bert.data.labels import CLASSES, REGRESSION, Labels
from bert.data.pooling import PoolingConfig
from bert.data.text.tokenizer import Tokenizer
from bert.inference import frozen_features
from bert.inference.predictor import Predictor
from bert.modeling import networks
from bert.modeling.config import BertConfig
from bert.modeling.engines.keras_engine import KerasEngine
from bert.modeling.task_heads import CLASSIFIER, TOKENS
from bert.tasks import evaluation
from bert.tasks.classification.files import TextExample
from bert.tasks.classification.task import TextClassification
from bert.tasks.ner.conll import Sentence
from bert.tasks.ner.task import WORDS, TokenClassification
from bert.tasks.similarity.task import TextEmbedding
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
            frozen_features.add_start(network, CLASSIFIER, found)
        engine = KerasEngine(encoder, network.get_layer(CLASSIFIER))
        predicted = Predictor(task, engine)([{"text": x} for x in texts])
        return found, [x["label"] for x in predicted]

    start.encoder = encoder
    return start


@pytest.mark.parametrize(("other", "predicts"), [("dog", True), ("cat", False)])
def test_words_predict_labels_that_outputs_do_not(started, other, predicts):
    """All words have the same embedding."""
    table = started.encoder.get_layer("embeddings").word_embeddings
    first = keras.ops.convert_to_numpy(0.5 + 0 * table)
    table.assign(first)
    texts = ["the cat", f"the {other}"] * 20
    rows = [TextExample(text=x, label=i % 2) for i, x in enumerate(texts)]
    found, predicted = started(rows, texts[:2])
    assert found.predicts == predicts == (predicted == ["n", "y"])
    np.testing.assert_allclose(found.weights[:, :-1], 0, atol=1e-6)
    words = found.words if predicts else 0
    np.testing.assert_array_equal(table, first + words)


def test_rows_of_all_labels_are_drawn_from_a_sorted_table(started, monkeypatch):
    monkeypatch.setattr(evaluation, "MAX_FITTED", 20)
    rows = [TextExample(text="the cat", label=0)] * 40
    rows += [TextExample(text="small dog sees", label=1)] * 40
    found, predicted = started(rows, ["the cat", "small dog sees"])
    assert predicted == ["n", "y"] and np.isfinite(found.weights).all()


def test_cosines_of_pairs_are_a_baseline_of_numbers(started, tmp_path):
    encoder = networks.build(
        BertConfig.from_json_file(str(tmp_path / "bert_config.json")),
        CLASSIFIER,
        1,
    ).get_layer("bert")
    tokenizer = Tokenizer(str(tmp_path / "vocab.txt"), do_lower_case=True)
    texts = [("the cat", "the cat"), ("small dog", "dog"), ("sees", "the cat")]

    def found(kind, *pairs):
        labels = Labels(kind, ("n", "y") if kind == CLASSES else ())
        task = TextClassification(tokenizer, labels, 13, has_pairs=True)
        rows = [
            TextExample(text=a, text_b=b, label=x)
            for (a, b), x in zip(pairs, (1, 0.7, 0))
        ]
        return frozen_features.cosines(encoder, task, rows, PoolingConfig())

    embed = TextEmbedding(tokenizer, PoolingConfig(normalize=True), 13)
    predict = Predictor(embed, KerasEngine(encoder, None))
    a, b = (
        np.array([x["vector"] for x in predict([{"text": t} for t in side])])
        for side in zip(*texts)
    )
    expected = np.corrcoef((a * b).sum(-1), (1, 0.7, 0))[0, 1]
    values = found(REGRESSION, *texts)
    assert values.keys() == {"pearson/cosine", "spearman/cosine"}
    assert values["pearson/cosine"] == pytest.approx(expected, abs=1e-4)
    assert not found(CLASSES, *texts)
    assert not found(REGRESSION, *texts[:2], ("sees", None))


def test_few_labels_start_no_head(started):
    rows = [TextExample(text="the cat", label=0)] * 9
    rows += [TextExample(text="small dog sees")] * 9  # for a teacher
    assert started(rows, ["the cat"])[0] is None


@pytest.mark.parametrize("document_context", [False, True])
def test_words_start_a_head(tmp_path, monkeypatch, document_context):
    """From windows of two words, of sentences that are drawn."""
    monkeypatch.setattr(evaluation, "MAX_FITTED", 60)
    config = model_files.write_sizes(tmp_path, initializer_range=0.5)
    network = networks.build(config, TOKENS, 3)
    tokenizer = Tokenizer(str(tmp_path / "vocab.txt"), do_lower_case=True)
    task = TokenClassification(
        tokenizer,
        ["O", "B-X", "I-X"],
        True,
        max_length=4,
        document_context=document_context,
    )
    words, labels = ["the", "small", "dog", "sees"], ["O", "B-X", "I-X", "O"]
    rows = [Sentence(words, labels, [], i // 3) for i in range(40)]

    encoder = network.get_layer("bert")
    found = frozen_features.fit_head(encoder, task, rows)
    assert found.predicts
    frozen_features.set_head(network, TOKENS, found.weights)
    engine = KerasEngine(encoder, network.get_layer(TOKENS))
    (predicted,) = Predictor(task, engine)([{WORDS: words}])
    assert [x["label"] for x in predicted[WORDS]] == labels
    assert frozen_features.fit_head(encoder, task, rows[:2]) is None
