"""Predictions for masks at the evaluations of a run."""

import json

import numpy as np
import tensorflow as tf

from data import features
from modeling.models import build_pretraining_model
from tasks.pretraining import filled_masks
from tests.helpers import pretraining_files, small
from tests.helpers.small import P, S


def batches(rows=5):
    """Held-out batches; their masked positions have [MASK], but for one."""
    batch = small.batch(rows=rows)
    batch["input_mask"][:] = 1
    mask = pretraining_files.VOCABULARY.index("[MASK]")
    batch["masked_lm_positions"][:] = [2, 5, 7]
    batch["masked_lm_weights"][:] = 1
    batch["masked_lm_weights"][1, 1:] = 0
    batch["input_ids"][:, [2, 5, 7]] = mask
    batch["input_ids"][2, 5] = 11  # keeps a token
    return batch, tf.data.Dataset.from_tensors(batch)


def test_each_evaluation_adds_the_best_tokens_of_the_same_masks(tmp_path):
    vocab = tmp_path / "vocab.txt"
    vocab.write_text("".join(f"{x}\n" for x in pretraining_files.VOCABULARY))
    model = build_pretraining_model(small.config())
    batch, dataset = batches()
    filled = filled_masks.FilledMasks(
        str(tmp_path),
        model,
        dataset,
        str(vocab),
    )
    for step in (3, 7, 5):  # the run went back to an earlier step
        filled.write(step)
    path = tmp_path / "filled_masks.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["step"] for line in lines] == [3, 5]
    sentences = lines[0]["sentences"]
    assert len(sentences) == 4
    positions = [[x["position"] for x in s["masks"]] for s in sentences]
    assert positions == [[2, 5, 7], [2], [2, 7], [2, 5, 7]]

    logits = model({name: batch[name] for name in model.input})
    probabilities = tf.nn.softmax(logits["masked_lm_logits"]).numpy()
    assert probabilities.shape[1] == P
    for row, number, found in ((0, 1, 1), (2, 2, 1)):
        mask = sentences[row]["masks"][found]
        label = batch[features.MASKED_LM_IDS][row, number]
        assert mask["label"] == pretraining_files.VOCABULARY[label]
        best = np.argsort(-probabilities[row, number])[:3]
        words = [pretraining_files.VOCABULARY[i] for i in best]
        assert [word for word, _ in mask["predicted"]] == words
        np.testing.assert_allclose(
            [p for _, p in mask["predicted"]],
            probabilities[row, number][best],
            atol=6e-5,
        )
    tokens = [pretraining_files.VOCABULARY[i] for i in batch["input_ids"][0]]
    assert sentences[0]["tokens"] == tokens and len(tokens) == S
