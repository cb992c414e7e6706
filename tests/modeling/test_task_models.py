"""Classifier and span model against numpy."""

import numpy as np

from bert.modeling import checkpoints, dropout, task_models
from tests.helpers import numpy_bert, small
from tests.helpers.small import A, B, H, L, S

C = 5


def randomized(model):
    rng = np.random.default_rng(3)
    for variable in model.variables:
        variable.assign(rng.normal(0.1, 0.3, variable.shape))
    named = checkpoints.model_variables(model)
    weights = {name: variable.numpy() for name, variable in named.items()}
    pretraining = {
        "cls/predictions/transform/dense/kernel": (H, H),
        "cls/predictions/transform/dense/bias": (H,),
        "cls/predictions/transform/LayerNorm/gamma": (H,),
        "cls/predictions/transform/LayerNorm/beta": (H,),
        "cls/predictions/output_bias": (97,),
        "cls/seq_relationship/output_weights": (2, H),
        "cls/seq_relationship/output_bias": (2,),
    }
    unused = {name: np.zeros(shape) for name, shape in pretraining.items()}
    expected = numpy_bert.forward({**weights, **unused}, small.batch(), L, A)
    return weights, expected


def inputs_of(model):
    return {name: small.batch()[name] for name in model.input}


def test_the_classifier_reads_the_pooled_vector():
    model = task_models.build_classifier(small.config(), C)
    weights, expected = randomized(model)
    logits = expected["pooled_output"] @ weights["output_weights"].T
    outputs = model(inputs_of(model))
    assert list(outputs) == ["logits"]
    np.testing.assert_allclose(
        outputs["logits"], logits + weights["output_bias"], atol=1e-5
    )


def test_the_span_model_scores_every_token():
    model = task_models.build_span_model(small.config())
    weights, expected = randomized(model)
    logits = expected["encoder_outputs"][-1] @ (
        weights["cls/squad/output_weights"].T
    )
    logits = logits + weights["cls/squad/output_bias"]  # [B, S, 2]
    outputs = model(inputs_of(model))
    assert logits.shape == (B, S, 2)
    for index, name in enumerate(("start_logits", "end_logits")):
        np.testing.assert_allclose(outputs[name], logits[..., index], atol=1e-5)


def test_the_classifier_drops_a_tenth_of_the_pooled_vector():
    """Fixed in the original, independent of the config."""
    model = task_models.build_classifier(small.config(), C)
    weights, expected = randomized(model)
    inputs = inputs_of(model)
    plain = np.array(model(inputs)["logits"])
    with dropout.dropout_seed((1, 2)):
        first = np.array(model(inputs, training=True)["logits"])
    with dropout.dropout_seed((1, 3)):
        second = np.array(model(inputs, training=True)["logits"])
    assert (plain != first).any() and (first != second).any()
    assert model.get_layer("dropout").rate == 0.1
