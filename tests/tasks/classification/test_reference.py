import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge

from bert.data.text.tokenizer import Tokenizer
from bert.tasks.classification import tfidf
from bert.tasks.classification.files import TextExample

TOKENS = "[PAD] [UNK] [CLS] [SEP] [MASK] good bad dull 猫 犬 book".split()
# A word of one letter and one without blanks are words too.
TEXTS = ["good book", "bad book", "猫", "Dull dull", "good 猫犬", "bad", "book"]
TEXTS *= 5
NEW = ["GOOD", "a dull book", "犬猫", ""]


def rows_of(texts, labels):
    rows = zip(texts, labels, strict=True)
    return [TextExample("0", "", t, y, 1) for t, y in rows]


def answers(texts, labels, kind):
    new = rows_of(NEW, [None] * len(NEW))
    tokenizer = Tokenizer("vocab.txt", tokens=TOKENS)
    return tfidf.predictions(rows_of(texts, labels), new, kind, tokenizer)


def weights():
    """TF-IDF of the known texts and the new ones, by words."""
    lines = [[*map(spaced, texts)] for texts in (TEXTS, NEW)]
    model = TfidfVectorizer(token_pattern=r"\S+", sublinear_tf=True)
    return model.fit_transform(lines[0]), model.transform(lines[1])


def spaced(text):
    """The words of a text between blanks."""
    return text.replace("猫", " 猫 ").replace("犬", " 犬 ")


@pytest.mark.parametrize(
    ("kind", "labels", "model"),
    [
        ("classes", [2, 1, 0, 1, 2, 1, 2] * 5, LogisticRegression()),
        ("regression", [1.5, -2.0, 0.0, -1.0, 2.0, -2.5, 0.5] * 5, Ridge()),
    ],
)
def test_answers_are_those_of_scikit_learn(kind, labels, model):
    known, new = weights()
    expected = model.fit(known, labels).predict(new)
    found = answers(TEXTS, labels, kind)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert len(set(found.tolist())) > 1


def test_each_of_several_labels_has_a_model():
    known, new = weights()
    labels = [[1, 0, 1], [0, 0, 1], [1, 0, 1], [0, 0, 1], [1, 0, 1]]
    labels = (labels + [[0, 0, 1], [1, 0, 1]]) * 5
    first = LogisticRegression().fit(known, [row[0] for row in labels])
    found = answers(TEXTS, labels, "multi_label")
    expected = [[x, 0, 1] for x in first.predict(new)]
    assert found.tolist() == expected and len({*found[:, 0].tolist()}) == 2


@pytest.mark.parametrize(
    ("texts", "labels", "expected"),
    [(["good", "bad"], [1, 1], [1] * 4), (["", " "], [0, 1], None)],
)
def test_what_has_nothing_to_learn_needs_no_model(texts, labels, expected):
    found = answers(texts, labels, "classes")
    assert found is expected or found.tolist() == expected
