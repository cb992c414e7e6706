import math

import numpy as np
import pytest
import tensorflow as tf

from bert.common.errors import UserError
from bert.data import feature_names
from bert.tasks.pretraining import inputs
from bert.tasks.pretraining.baselines import TargetCounts
from tests.helpers import pretraining_files, small


def batches(count):
    for seed in range(count):
        batch = small.batch(seed, 5)
        batch[feature_names.IS_REAL_EXAMPLE][3:] = 0
        batch[feature_names.MASKED_LM_WEIGHTS][3:] = 0
        yield {name: tf.constant(x) for name, x in batch.items()}


def test_references_are_those_of_the_real_targets():
    counts = TargetCounts(small.V)
    seen = list(counts.watch(batches(7)))
    tokens, pairs = [], []
    for batch in seen:
        shown = batch[feature_names.MASKED_LM_WEIGHTS].numpy() > 0
        tokens += batch[feature_names.MASKED_LM_IDS].numpy()[shown].tolist()
        pairs += (
            batch[feature_names.NEXT_SENTENCE_LABELS].numpy()[:3, 0].tolist()
        )
    shares = np.unique(tokens, return_counts=True)[1] / len(tokens)
    ones = sum(pairs) / len(pairs)
    assert len(pairs) == 21
    assert counts.baselines() == {
        "masked_lm_loss/chance": math.log(small.V),
        "next_sentence_loss/chance": math.log(2),
        "masked_lm_loss/unigrams": pytest.approx(-(shares @ np.log(shares))),
        "masked_lm_accuracy/majority": pytest.approx(shares.max()),
        "next_sentence_accuracy/majority": pytest.approx(max(ones, 1 - ones)),
    }


def test_packed_rows_have_weights_of_their_pairs():
    batch = next(batches(1))
    batch[feature_names.NEXT_SENTENCE_LABELS] = tf.constant([[1, 0, 1]] * 5)
    batch[feature_names.NEXT_SENTENCE_WEIGHTS] = tf.constant(
        [[1.0, 1.0, 0.0]] * 5
    )
    counts = TargetCounts(small.V)
    list(counts.watch([batch]))
    assert counts.baselines()["next_sentence_accuracy/majority"] == 0.5


def test_without_a_target_chance_alone_is_known():
    assert set(TargetCounts(2).baselines()) == {
        "masked_lm_loss/chance",
        "next_sentence_loss/chance",
    }


@pytest.mark.parametrize(
    ("vocab_size", "warns"),
    [(8000, False), (8064, False), (8008, False)]
    + [(8001, True), (8128, True), (30522, True)],
)
def test_a_config_with_more_tokens_than_the_records_is_reported(
    capsys, vocab_size, warns
):
    manifest = pretraining_files.manifest(vocab_size=8000)
    config = small.config(vocab_size=vocab_size)
    inputs.check_config([manifest, manifest], config, "bert_mini.json")
    err = capsys.readouterr().err
    message = (
        f"warning: bert_mini.json: vocab_size is {vocab_size}, vocab.txt has "
        "8000 tokens: the others are never trained; pass --vocab_size=8000\n"
    )
    assert err == message * warns
    with pytest.raises(UserError, match="at least 8000"):
        small_one = small.config(vocab_size=7999)
        inputs.check_config([manifest], small_one, "bert_mini.json")
