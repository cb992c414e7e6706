"""bert.embed: one vector of each text, from the outputs of a layer."""

import numpy as np
import pytest

import bert
from bert.common.errors import UserError
from bert.data.pooling import PoolingConfig


@pytest.mark.parametrize("pooling", ["mean", "max", "cls"])
def test_vectors_of_texts(pooling, loaded):
    encoder, tokenizer = loaded
    texts = ["the cat sees a dog", "tree", "a red fish", ""]
    found = bert.embed(texts, loaded, pooling=pooling, batch_size=2)
    assert found.dtype == np.float32
    for text, vector in zip(texts, found, strict=True):
        rows = encoder(tokenizer(text))["sequence_output"][0].numpy()
        pooled = {"mean": rows.mean(0), "max": rows.max(0), "cls": rows[0]}
        np.testing.assert_allclose(vector, pooled[pooling], atol=1e-5)


def test_vectors_of_length_one(loaded):
    plain = bert.embed(["the cat", "tree"], loaded)
    scaled = bert.embed(["the cat", "tree"], loaded, normalize=True)
    lengths = np.linalg.norm(plain, axis=1, keepdims=True)
    np.testing.assert_allclose(scaled, plain / lengths, atol=1e-6)
    assert bert.embed("tree", loaded).shape == (1, plain.shape[1])
    assert bert.embed([], loaded).shape == (0, plain.shape[1])
    zeros = np.zeros((3, 5), np.float32)
    assert not PoolingConfig(normalize=True).embed_one(zeros).any()


def test_texts_have_at_most_the_positions_of_the_model(folder, loaded):
    encoder, tokenizer = loaded
    vocab = str(folder / "model" / "vocab.txt")
    text = "the cat sees a dog " * 9
    for most in (512, 5):  # and at most the length of the tokenizer
        other = bert.Tokenizer(vocab, max_length=most)
        found = bert.embed(text, (encoder, other))
        expected = bert.embed(text, loaded, max_length=min(most, 13))
        np.testing.assert_array_equal(found, expected)


def test_mistakes(folder, loaded):
    with pytest.raises(UserError, match=r"texts\[1\] is None; expected a str"):
        bert.embed(["the", None], loaded)
    with pytest.raises(UserError, match="pooling='last'; expected mean"):
        bert.embed("the", loaded, pooling="last")
    with pytest.raises(UserError, match="batch_size=0; expected 1 or more"):
        bert.embed("the", loaded, batch_size=0)
    for layer in (0, -3):
        with pytest.raises(
            UserError, match=f"layer={layer}; expected -1 to -2"
        ):
            bert.embed("the", loaded, layer=layer)
    for length in (2, 14):
        with pytest.raises(UserError, match=f"max_length={length}; .* 3 to 13"):
            bert.embed("the", loaded, max_length=length)
    with pytest.raises(UserError, match="no vocabulary"):
        bert.embed("the", (loaded[0], None))
    with pytest.raises(UserError, match="path=.*Encoder.*; expected a path"):
        bert.embed("the", loaded[0])
    tokens = [*loaded[1].tokens, "more"]
    larger = bert.Tokenizer("more.txt", tokens=tokens)
    message = (
        rf"more.txt: {len(tokens)} tokens; expected at most {len(tokens) - 1}"
    )
    with pytest.raises(UserError, match=message):
        bert.embed("more", (loaded[0], larger))
