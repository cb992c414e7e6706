"""bert.fill_mask: words for each mask of a text."""

import numpy as np
import pytest

import bert
from bert.common.errors import UserError
from bert.modeling import checkpoints, networks
from tests.helpers import library_files


def test_the_words_of_each_mask(folder, values, loaded):
    found = bert.fill_mask("the [MASK] sees [MASK] .", loaded, top_k=3)
    network = networks.build_pretraining_model(library_files.config())
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
    (words,) = bert.fill_mask("the [MASK] sees a dog", loaded, words="cat")
    assert [word for word, _ in words] == ["cat"]


def test_mistakes(folder, loaded):
    with pytest.raises(UserError, match="no masked-LM head"):
        bert.fill_mask("the [MASK]", str(folder / "run"))
    with pytest.raises(UserError, match="no words; expected at least one"):
        bert.fill_mask("[MASK]", loaded, words=[])
    with pytest.raises(UserError, match=r"text is \['\[MASK\]'\]; expected"):
        bert.fill_mask(["[MASK]"], loaded)
    with pytest.raises(UserError, match=r"'the cat' has no mask"):
        bert.fill_mask("the cat", loaded)
    with pytest.raises(UserError, match="has 14 tokens; expected at most 13"):
        bert.fill_mask("[MASK] " + "the " * 11, loaded)
    with pytest.raises(UserError, match="top_k=0; expected an integer of 1"):
        bert.fill_mask("[MASK]", loaded, top_k=0)
