"""Save, load, clone, fit, resume and export as Keras' own guides do."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert
from bert.common.errors import UserError
from bert.modeling import encoder, networks, precision, task_heads
from tests.helpers import small

ROWS = 6
C = 3
pytestmark = pytest.mark.slow


def own_head(config):
    """A layer on one of the encoder's outputs."""
    bert = encoder.build_encoder(config)
    scores = keras.layers.Dense(C)(bert.output["pooled_output"])
    return keras.Model(bert.input, scores)


def nested(config):
    """The encoder called as a layer."""
    bert = encoder.build_encoder(config)
    inputs = {
        name: keras.Input((None,), dtype="int32", name=name)
        for name in bert.input
    }
    scores = keras.layers.Dense(C)(bert(inputs)["pooled_output"])
    return keras.Model(inputs, scores)


BUILDERS = {
    "encoder": encoder.build_encoder,
    "packed": lambda config: encoder.build_encoder(config, packed=True),
    "own_head": own_head,
    "nested": nested,
    "pretraining": networks.build_pretraining_model,
    "packed_pretraining": (
        lambda config: networks.build_pretraining_model(config, packed=True)
    ),
    "classifier": lambda config: networks.build(
        config, task_heads.CLASSIFIER, C
    ),
    "span": lambda config: networks.build(config, task_heads.SPANS, 2),
    "token": lambda config: networks.build(config, task_heads.TOKENS, C),
    "choice": lambda config: networks.build(config, task_heads.CHOICES, 1),
}
OFTEN = ("nested", "packed_pretraining", "classifier")  # in `make test`


def built(kind, rate=0.0):
    """A model with random weights, biases included."""
    model = BUILDERS[kind](
        small.config(
            hidden_dropout_prob=rate, attention_probs_dropout_prob=rate
        )
    )
    rng = np.random.default_rng(3)
    for variable in model.variables:
        variable.assign(rng.normal(0.1, 0.3, variable.shape))
    return model


def batch_of(model):
    """Inputs of any of the models: ids of S positions, and K of [CLS]."""
    rng = np.random.default_rng(5)
    choices = (2,) if len(next(iter(model.input.values())).shape) == 3 else ()
    limits = {"input_ids": small.V, "masked_lm_positions": small.S}
    return {
        name: rng.integers(
            0,
            limits.get(name, 2),
            (ROWS, *choices, 2 if name.endswith("e_positions") else small.S),
            np.int32,
        )
        for name in model.input
    }


def assert_equal_outputs(model, other, atol=0.0):
    inputs = batch_of(model)
    found = keras.tree.flatten(other(inputs))
    for x, y in zip(keras.tree.flatten(model(inputs)), found, strict=True):
        np.testing.assert_allclose(
            tf.cast(x, "float32"), tf.cast(y, "float32"), atol=atol, rtol=0
        )


EVERY_KIND = pytest.mark.parametrize(
    "kind",
    [
        pytest.param(x, marks=[pytest.mark.long] * (x not in OFTEN))
        for x in BUILDERS
    ],
)


@EVERY_KIND
def test_a_saved_model_comes_back(kind, tmp_path):
    model = built(kind)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert type(again) is type(model)
    assert_equal_outputs(model, again)
    # A pooler that is not read stays frozen.
    for x, y in zip(model.variables, again.variables, strict=True):
        assert (x.path, x.trainable) == (y.path, y.trainable)


@EVERY_KIND
def test_a_clone_has_the_same_graph_and_weights_of_its_own(kind):
    model = built(kind)
    before = model.get_weights()
    clone = keras.models.clone_model(model)
    assert len(clone.weights) == len(before)  # tied ones are tied
    clone.set_weights(before)
    assert_equal_outputs(model, clone)
    for variable in clone.weights:
        variable.assign(variable + 1.0)
    for x, y in zip(model.get_weights(), before, strict=True):
        np.testing.assert_array_equal(x, y)


def test_a_layer_keeps_its_precision_when_it_is_loaded(tmp_path):
    with precision.computing_in("bfloat16"):
        model = built("own_head")
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert_equal_outputs(model, again)
    kinds = {x.compute_dtype for x in again.get_layer("layer_1")._layers}
    assert kinds == {"bfloat16"}


def test_an_exported_model_gives_the_same_outputs(tmp_path):
    model = built("encoder")
    model.export(str(tmp_path / "export"), verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "export"))
    inputs = batch_of(model)
    found = loaded.serve({n: tf.constant(x) for n, x in inputs.items()})
    assert set(found) == {"sequence_output", "pooled_output"}
    expected = model(inputs)
    for name, value in found.items():
        np.testing.assert_allclose(value, expected[name], atol=1e-5)


@pytest.mark.parametrize("use", ["__call__", "predict"])
def test_a_negative_id_is_an_error(use):
    """Not the token that many from the end."""
    model = built("own_head")
    inputs = batch_of(model)
    inputs["input_ids"][1, 2] = -1
    with pytest.raises(tf.errors.InvalidArgumentError, match="-1 is not in"):
        getattr(model, use)(inputs)


def test_a_quantized_model_comes_back(tmp_path):
    model = built("pretraining")
    dense = [
        x for x in model._flatten_layers() if isinstance(x, keras.layers.Dense)
    ]
    assert len(dense) == 6 * small.L + 2
    model.quantize("int8")
    assert {x.quantization_mode for x in dense} == {"int8"}
    assert_equal_outputs(built("pretraining"), model, atol=1.0)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert_equal_outputs(model, again)


def test_low_rank_updates_are_trained_alone_and_saved(tmp_path):
    models = [built("encoder"), built("encoder")]
    for model in models:
        model.enable_lora(2, lora_alpha=3)
    first, second = (list(x.trainable_variables) for x in models)
    names = [variable.name for variable in first]
    assert names == ["lora_kernel_a", "lora_kernel_b"] * (6 * small.L + 1)
    for x, y in zip(first, second, strict=True):
        np.testing.assert_array_equal(x, y)  # a function of the seed
    starts = {x.numpy().tobytes() for x in first if x.name.endswith("_a")}
    assert len(starts) == len(names) / 2  # and of the layer
    assert_equal_outputs(built("encoder"), model)  # until they are trained
    for variable in second:
        variable.assign(variable + 0.1)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert_equal_outputs(model, again, atol=1e-5)


@pytest.mark.usefixtures("eagerly")
def test_a_classifier_is_trained_on_logits_by_default(tmp_path):
    model = built("classifier")
    inputs, labels = batch_of(model), np.arange(ROWS) % C
    model.compile(bert.AdamWeightDecay(1e-2), jit_compile=False)
    model.fit(inputs, labels, verbose=0)
    logits = model(inputs)["logits"].numpy()
    losses = np.log(np.exp(logits).sum(-1)) - logits[range(ROWS), labels]
    expected = [losses.mean(), np.mean(logits.argmax(-1) == labels)]
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    for each in (model, again):
        found = each.evaluate(inputs, labels, verbose=0)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    again.save(tmp_path / "again.keras")
    assert int(again.optimizer.iterations) == 1
    slots = [x.optimizer.variables for x in (model, again)]
    for x, y in zip(*slots, strict=True):
        np.testing.assert_array_equal(x, y)
    regression = networks.build(small.config(), task_heads.CLASSIFIER, 1)
    regression.compile("sgd", jit_compile=False)
    scores = regression(inputs)["logits"].numpy()[:, 0]
    found = regression.evaluate(inputs, labels, verbose=0)
    assert found == pytest.approx(np.mean((scores - labels) ** 2), rel=1e-5)


@pytest.mark.parametrize(
    "loss",
    [
        "sparse_categorical_crossentropy",
        "bce",
        keras.losses.SparseCategoricalCrossentropy(),
        {"logits": keras.losses.categorical_crossentropy},
    ],
)
def test_a_loss_of_probabilities_is_an_error(loss):
    model = built("classifier")
    with pytest.raises(UserError, match="probabilities; .* from_logits=True"):
        model.compile("sgd", loss)
    model.compile("sgd", "mse")  # any other


def test_wrong_names_of_inputs_are_an_error():
    """Keras would take them in the order of their names."""
    model = built("encoder")
    inputs = batch_of(model)
    inputs["attention_mask"] = inputs.pop("input_mask")
    with pytest.raises(ValueError, match="input_mask"):
        model(inputs)
