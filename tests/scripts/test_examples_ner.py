"""The feature-based NER example runs on a small random encoder."""

import random

import numpy as np
import pytest

from common import tensor_files
from data.text import tokenization
from examples import feature_ner
from modeling.encoder import build_encoder
from tests.helpers import model_files, names, small


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    config = model_files.write_sizes(
        folder,
        tokens=names.vocabulary(),
        num_hidden_layers=4,
        max_position_embeddings=feature_ner.S,
    )
    values = model_files.values_of(build_encoder(config))
    tensor_files.write(str(folder / "bert_model.ckpt"), values)
    return folder


def test_first_tokens_are_found_and_long_sentences_split(model, tmp_path):
    tokenizer = tokenization.FullTokenizer(str(model / "vocab.txt"))
    words = ["anna", "smithson", "\u200b", "township"] + ["in", "smithson"] * 97
    path = tmp_path / "words"
    path.write_text("".join(f"{word} O\n" for word in words))
    chunks = feature_ner.read_chunks(str(path), tokenizer)
    assert [word for chunk in chunks for word in chunk.words] == [
        "?" if word == "\u200b" else word for word in words
    ]
    assert chunks[0].positions[:6] == [1, 2, 4, 5, 7, 8]
    assert len(chunks) == 3
    for chunk in chunks:
        tokens = tokenizer.tokenize("\t".join(chunk.words))
        assert len(tokens) <= feature_ner.S - 2
        for word, i in zip(chunk.words, chunk.positions, strict=True):
            first = (tokenizer.tokenize(word) or ["[UNK]"])[0]
            assert tokens[i - 1] == first


@pytest.mark.long
def test_the_recipe_learns_the_grammar(model, tmp_path, capsys):
    rng = random.Random(1)
    for name, count in (("train", 499), ("held_out", 61)):
        sentences = [
            names.sentence(rng, rng.randint(1, 3)) for _ in range(count)
        ]
        names.write(tmp_path / name, sentences)
    scores = feature_ner.run(
        str(tmp_path / "train"),
        str(tmp_path / "held_out"),
        str(model),
        str(tmp_path / "vectors"),
        units=19,
        epochs=6,
        batch_size=17,
        learning_rate=1e-2,
    )
    assert scores["f1"] >= 0.85
    with np.load(tmp_path / "vectors" / "train.npz") as found:
        assert found["values"].shape[1] == 4 * small.H
