"""The BERT of Model Garden: writes a checkpoint, or an export for TF-Hub.

    python model_garden_outputs.py save PREFIX CONFIG.json IO.npz
    python model_garden_outputs.py export VALUES.npz CONFIG.json VOCAB FOLDER

The weights of `save` are random. IO.npz holds input_ids, input_mask,
segment_ids and masked_lm_positions; the outputs are added to it. VALUES.npz has
the weights of `export` by full name. Runs in the environment that `make peers`
installs.
"""

import json
import sys

import numpy as np
import tensorflow as tf
from official.modeling import tf_utils
from official.nlp.modeling import layers, models, networks


def build(config: dict) -> models.BertPretrainerV2:
    """Builds their pre-training model with these sizes."""
    tf.keras.utils.set_random_seed(1)
    activation = tf_utils.get_activation(
        "gelu" if config["hidden_act"] == "gelu" else "relu"
    )
    encoder = networks.BertEncoder(
        vocab_size=config["vocab_size"],
        hidden_size=config["hidden_size"],
        num_layers=config["num_hidden_layers"],
        num_attention_heads=config["num_attention_heads"],
        inner_dim=config["intermediate_size"],
        inner_activation=activation,
        max_sequence_length=config["max_position_embeddings"],
        type_vocab_size=config["type_vocab_size"],
    )
    head = layers.ClassificationHead(
        inner_dim=config["hidden_size"],
        num_classes=2,
        activation="tanh",
        name="next_sentence",
    )
    model = models.BertPretrainerV2(
        encoder, mlm_activation=activation, classification_heads=[head]
    )
    model(model.inputs)
    return model


def save(prefix: str, config: str, path: str) -> None:
    """Saves random weights, and adds the outputs to the file."""
    model = _build_from(config)
    rng = np.random.default_rng(3)
    for variable in model.variables:
        variable.assign(rng.normal(0, 0.2, variable.shape))
    _checkpoint(model).save(prefix)
    arrays = dict(np.load(path))
    outputs = model(
        {
            "input_word_ids": arrays["input_ids"],
            "input_mask": arrays["input_mask"],
            "input_type_ids": arrays["segment_ids"],
            "masked_lm_positions": arrays["masked_lm_positions"],
        },
        training=False,
    )
    np.savez(
        path,
        **arrays,
        out_sequence=outputs["sequence_output"],
        out_masked_lm=outputs["mlm_logits"],
        out_next_sentence=outputs["next_sentence"],
    )


def export(values: str, config: str, vocab_file: str, path: str) -> None:
    """Exports weights with their TF-Hub exporter, masked LM included."""
    from official.legacy.bert import configs
    from official.nlp.tools import export_tfhub_lib

    model = _build_from(config)
    arrays = dict(np.load(values))
    for variable in model.variables:
        name = variable.name.removeprefix("bert/").removesuffix(":0")
        # The pooler is the head's; their exporter copies it to the encoder.
        name = name.replace("next_sentence/pooler_dense", "pooler_transform")
        variable.assign(arrays[name])
    export_tfhub_lib.export_model(
        path,
        bert_config=configs.BertConfig.from_json_file(config),
        model_checkpoint_path=_checkpoint(model).save(f"{path}_ckpt"),
        with_mlm=True,
        copy_pooler_dense_to_encoder=True,
        vocab_file=vocab_file,
        do_lower_case=False,
    )


def _build_from(config: str) -> models.BertPretrainerV2:
    with open(config, encoding="utf-8") as file:
        return build(json.load(file))


def _checkpoint(model: models.BertPretrainerV2) -> tf.train.Checkpoint:
    return tf.train.Checkpoint(model=model, **model.checkpoint_items)


if __name__ == "__main__":
    {"save": save, "export": export}[sys.argv[1]](*sys.argv[2:])
