"""Tables of texts to rows and features."""

import numpy as np
import pytest

from bert.common.errors import UserError
from bert.data import feature_names
from bert.data.pooling import PoolingConfig
from bert.data.tables import InputFile
from bert.data.text.tokenizer import Tokenizer
from bert.tasks.similarity import inputs
from bert.tasks.similarity.settings import Settings
from bert.tasks.similarity.task import TextEmbedding, TextGroup
from tests.helpers import run_folders, text


@pytest.fixture
def read(tmp_path):
    """Reads a table with these flags; returns its rows."""

    def read(content, *words, name="train_file"):
        path = tmp_path / "table.csv"
        path.write_text(content)
        step = {"train_file": "do_train", "eval_file": "do_eval"}
        settings = run_folders.parse(
            Settings,
            *(f"--{step.get(name, 'do_predict')}", *words),
            **{"init_checkpoint": "x", name: path},
        )
        _, files = inputs.read(run_folders.opened(settings))
        (file,) = run_folders.splits(files)
        return file.rows

    return read


TABLE = "text,text_b,score\nthe cat,a dog,1\n"


@pytest.mark.parametrize(
    ("words", "name", "has_scores"),
    [
        ((), "train_file", True),
        (("--loss=ranking",), "train_file", False),
        ((), "eval_file", True),
        (("--score_column=x",), "eval_file", False),
        (("--score_column=2",), "eval_file", True),
        (("--score_column=-1",), "eval_file", True),
        (("--score_column=7",), "eval_file", False),
        ((), "predict_file", False),
        (("--loss=cosine",), "train_file", True),
    ],
)
def test_only_some_files_have_scores(read, words, name, has_scores):
    """A file for evaluation has scores if it has their column."""
    score = 1.0 if has_scores else None
    rows = read(TABLE, *words, name=name)
    assert rows == [(["the cat", "a dog"], score)]


@pytest.mark.parametrize(
    ("row", "words", "message"),
    [
        ("a,b,high", (), "2: score 'high'; expected a number"),
        ("a,b,Neutral", (), "2: score 'Neutral'; expected a number; for NLI"),
        ("a,b,2", ("--loss=cosine",), "2: score '2'; expected a number, -1 to"),
        ("a,b,-2", ("--loss=cosine",), "2: score '-2'; expected a number, -1"),
        ("a, ,0.5", (), "2: a text is empty; expected words"),
        ("a,b,1", ("--score_column=y",), "1: no column 'y'; expected one of"),
    ],
)
def test_wrong_rows(read, tmp_path, row, words, message):
    with pytest.raises(UserError) as caught:
        read(f"text,text_b,score\n{row}\n", *words)
    assert str(caught.value).startswith(f"{tmp_path}/table.csv:{message}")


@pytest.mark.parametrize("size", ["0", "12", "a", ""])
def test_wrong_sizes_of_vectors(size):
    settings = Settings(matryoshka_dims=("11", size))
    with pytest.raises(UserError, match="expected 1 to 11, the size of an e"):
        settings.sizes(11, 11)
    assert Settings(matryoshka_dims=("11", "7")).sizes(11, 5) == (11, 7)
    assert Settings().sizes(11, 5) == (5,)


def test_equal_texts_have_equal_numbers(read, tmp_path):
    """By their ids, after they are cut."""
    text.write_vocabulary(tmp_path / "vocab.txt")
    rows = "the cat,A DOG,1\na dog,the cat sees a bird,0\n"
    groups, told = read(f"text,text_b,score\n{rows}"), []
    tokenizer = Tokenizer(str(tmp_path / "vocab.txt"))
    embedding = TextEmbedding(tokenizer, PoolingConfig(), 4)
    encoded = [*embedding.records(groups, told.append)]
    assert [x[feature_names.TEXT_NUMBERS] for x in encoded] == [[0, 1], [1, 0]]
    assert [x[feature_names.LABEL_IDS] for x in encoded] == [[1.0], [0.0]]
    assert [len(x) for x in encoded[1][feature_names.INPUT_IDS]] == [4, 4]
    assert [x.is_truncated for x in told] == [False] * 3 + [True]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_each_further_text_is_compared_with_the_first(tmp_path, count):
    vectors = np.random.default_rng(7).normal(size=(5, count, 3))
    task = TextEmbedding(None, PoolingConfig(), 7, texts=count)
    (path,) = task.write_predictions(
        str(tmp_path),
        InputFile("a.csv", [None] * 5),
        [],
        [*vectors.reshape(-1, 3)],
        Settings(),
    )
    expected = [[x[0] @ other for other in x[1:]] for x in vectors]
    found = np.loadtxt(path, ndmin=2)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_baseline_is_the_overlap_of_words(tmp_path):
    text.write_vocabulary(tmp_path / "vocab.txt")
    tokenizer = Tokenizer(str(tmp_path / "vocab.txt"), do_lower_case=True)
    task = TextEmbedding(tokenizer, PoolingConfig(), 13, has_scores=True)
    scores, overlaps = [3.0, 0.0, 2.0], [0.5, 0.0, 1.0]
    pairs = ["the cat", "the dog"], ["a bird", "red"], ["a a", "a"]
    rows = [*map(TextGroup, pairs, scores)]
    encoded = task.encode(task.inputs_of(rows))
    found = task.baselines(rows, encoded, rows, None)
    expected = np.corrcoef(scores, overlaps)[0, 1]
    assert found["pearson_cosine/word_overlap"] == pytest.approx(expected)
    assert task.metric == "spearman_cosine"


@pytest.mark.parametrize(
    ("scored", "metric"),
    [("eval_file", "spearman_cosine"), ("train_file", "cosine_ndcg@10")],
)
def test_the_file_to_evaluate_selects_the_metric(tmp_path, scored, metric):
    named = {"init_checkpoint": "x", "loss": "ranking"}
    named |= {"loss": "cosent"} if scored == "train_file" else {}
    for name in ("train_file", "eval_file"):
        named[name] = tmp_path / f"{name}.csv"
        table = TABLE if name == scored else "text,text_b\na,b\n"
        named[name].write_text(table)
    words = "--do_train", "--do_eval"
    settings = run_folders.parse(Settings, *words, **named)
    task, _ = inputs.read(run_folders.opened(settings))
    assert task.metric == metric


def test_a_row_of_ranking_may_have_many_negatives():
    named = {"train_file": "x", "init_checkpoint": "x", "loss": "ranking"}
    named["text_columns"] = "a,b,c,d"
    found = run_folders.parse(Settings, "--do_train", **named)
    assert found.text_columns == (*"abcd",)
