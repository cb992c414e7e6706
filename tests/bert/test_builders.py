import numpy as np

import bert
from bert.data import feature_names
from bert.modeling import checkpoints, networks
from tests.helpers import library_files, small

INPUTS = {
    name: np.int32(small.batch()[name])
    for name in (
        *feature_names.ENCODER_INPUTS,
        feature_names.MASKED_LM_POSITIONS,
    )
}
INPUTS["input_ids"] %= library_files.V


def load(folder, name):
    return bert.load_encoder(str(folder / name))[0]


def test_the_heads_of_pretraining_are_those_of_the_checkpoint(
    folder, values, capsys
):
    expected = networks.build_pretraining_model(library_files.config())
    checkpoints.assign(checkpoints.model_variables(expected), values, "")
    expected = expected(INPUTS)
    encoder = load(folder, "model")
    both = bert.masked_lm(encoder, next_sentence=True)(INPUTS)
    only = bert.masked_lm(encoder)(INPUTS)
    follows = bert.next_sentence(encoder)(
        {name: INPUTS[name] for name in feature_names.ENCODER_INPUTS}
    )
    assert list(both) == ["masked_lm_logits", "next_sentence_logits"]
    assert list(only) == ["masked_lm_logits"]
    for found in (both, only, follows):
        for name, logits in found.items():
            np.testing.assert_allclose(logits, expected[name], atol=1e-5)
    assert "random weights" not in capsys.readouterr().err


def test_a_classifier_starts_from_the_head_of_a_run(folder, capsys):
    encoder = load(folder, "run")
    saved = encoder.checkpoint.values["output_weights"]
    model = bert.classifier(encoder, 3)
    head = model.get_layer("classifier")
    np.testing.assert_array_equal(head.output_weights.numpy(), saved)
    assert "random weights" not in capsys.readouterr().err
    bert.classifier(encoder, 5)  # another number of labels
    bert.span_model(encoder)  # no such head was there
    bert.next_sentence(encoder)  # nobody means a new one
    lines = capsys.readouterr().err.splitlines()
    start = f"random weights, none of this shape in {encoder.checkpoint.path}"
    assert lines == [
        f"{start}: output_weights, output_bias",
        f"{start}: cls/seq_relationship/output_weights, "
        "cls/seq_relationship/output_bias",
    ]


def test_a_model_that_reads_the_pooler_trains_it():
    """Also after another model on the same encoder has frozen it."""
    encoder = bert.new_encoder(library_files.config())
    pooler = encoder.get_layer("pooler")
    for make in (
        lambda: bert.classifier(encoder, 2),
        lambda: bert.next_sentence(encoder),
        lambda: bert.masked_lm(encoder, next_sentence=True),
    ):
        bert.span_model(encoder)
        assert not pooler.trainable
        make()
        assert pooler.trainable


def test_a_frozen_encoder_stays_frozen():
    for freeze in (lambda x: [x], lambda x: x.layers):
        encoder = bert.new_encoder(library_files.config())
        for layer in freeze(encoder):
            layer.trainable = False
        bert.span_model(encoder)
        model = bert.classifier(encoder, 2)
        trained = [variable.name for variable in model.trainable_variables]
        assert trained == ["output_weights", "output_bias"]
