import numpy as np
import pytest

import bert
from bert.common.errors import UserError
from bert.modeling import checkpoints, models
from tests.helpers import library_files
from tests.helpers.frames import Frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def values(folder):
    library_files.run(folder / "run")
    return library_files.pretrained(folder / "model")


@pytest.fixture(scope="module")
def loaded(folder, values):
    return bert.load_encoder(str(folder / "model"))


def test_the_words_of_each_mask(folder, values, loaded):
    found = bert.fill_mask("the [MASK] sees [MASK] .", loaded, top_k=3)
    network = models.build_pretraining_model(library_files.config())
    checkpoints.assign(checkpoints.model_variables(network), values, "")
    inputs = loaded[1]("the cat sees cat .")
    inputs["input_ids"][0, [2, 4]] = 4
    positions = {"masked_lm_positions": np.array([[2, 4]], np.int32)}
    logits = network({**inputs, **positions})["masked_lm_logits"][0].numpy()
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True)
    assert len(found) == 2
    for words, row in zip(found, expected):
        best = np.argsort(-row)[:3]
        assert [word for word, _ in words] == [
            loaded[1].tokens[i] for i in best
        ]
        np.testing.assert_allclose([p for _, p in words], row[best], rtol=1e-4)
    by_path = bert.fill_mask("the [MASK]", folder / "model", 2)
    assert [len(words) for words in by_path] == [2]
    chosen = [word for word, _ in found[0]][:0:-1]
    (words,) = bert.fill_mask("the [MASK] sees a dog", loaded, words=chosen)
    assert {word for word, _ in words} == set(chosen)
    assert words[0][1] >= words[1][1]
    for one in ("cat", np.array(["cat"])):
        (words,) = bert.fill_mask("the [MASK] sees a dog", loaded, words=one)
        assert [word for word, _ in words] == ["cat"]


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
    table = Frame(Text=["the cat", "tree"])
    np.testing.assert_array_equal(bert.embed(table, loaded), plain)


def test_long_texts_are_truncated(loaded):
    short = bert.embed("the cat", loaded, max_length=4)
    long = bert.embed("the cat sees a dog", loaded, max_length=4)
    np.testing.assert_array_equal(short, long)


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
    with pytest.raises(UserError, match="no masked-LM head"):
        bert.fill_mask("the [MASK]", str(folder / "run"))
    with pytest.raises(UserError, match="no words; expected at least one"):
        bert.fill_mask("[MASK]", loaded, words=[])
    with pytest.raises(UserError, match=r"text is \['\[MASK\]'\]; expected"):
        bert.fill_mask(["[MASK]"], loaded)
    with pytest.raises(UserError, match=r"texts\[1\] is None; expected a str"):
        bert.embed(["the", None], loaded)
    with pytest.raises(UserError, match=r"'the cat' has no mask"):
        bert.fill_mask("the cat", loaded)
    with pytest.raises(UserError, match="has 14 tokens; expected at most 13"):
        bert.fill_mask("[MASK] " + "the " * 11, loaded)
    with pytest.raises(UserError, match="pooling='last'; expected mean"):
        bert.embed("the", loaded, pooling="last")
    with pytest.raises(UserError, match="batch_size=0; expected 1 or more"):
        bert.embed("the", loaded, batch_size=0)
    with pytest.raises(UserError, match="top_k=0; expected 1 or more"):
        bert.fill_mask("[MASK]", loaded, top_k=0)
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
    with pytest.raises(UserError, match="path=None; expected a path, or a"):
        bert.load_encoder(None)
    with pytest.raises(UserError, match="path=.*Encoder.*; expected a path"):
        bert.embed("the", loaded[0])
    with pytest.raises(UserError, match="texts is {'text': .*; expected a li"):
        bert.embed({"text": ["the"]}, loaded)
    tokens = [*loaded[1].tokens, "more"]
    larger = bert.Tokenizer("more.txt", tokens=tokens)
    message = (
        rf"more.txt: {len(tokens)} tokens; expected at most {len(tokens) - 1}"
    )
    with pytest.raises(UserError, match=message):
        bert.embed("more", (loaded[0], larger))
