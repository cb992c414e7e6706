"""The BERT of Model Garden: restores a checkpoint, or writes one.

    python model_garden_outputs.py restore PREFIX CONFIG.json IO.npz
    python model_garden_outputs.py save PREFIX CONFIG.json IO.npz
    python model_garden_outputs.py export PREFIX CONFIG.json VOCAB FOLDER
    python model_garden_outputs.py preprocess VOCAB FOLDER

IO.npz holds input_ids, input_mask, segment_ids and masked_lm_positions; the
outputs are added to it. Runs in the environment that `make peers` installs.
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


def main(action: str, prefix: str, config: str, path: str) -> None:
    """Restores or saves, and adds the outputs to the file."""
    with open(config, encoding="utf-8") as file:
        model = build(json.load(file))
    items = {"model": model, **model.checkpoint_items}
    checkpoint = tf.train.Checkpoint(**items)
    if action == "save":
        rng = np.random.default_rng(3)
        for variable in model.variables:
            variable.assign(rng.normal(0, 0.2, variable.shape))
        checkpoint.save(prefix)
    else:
        status = checkpoint.restore(prefix)
        status.assert_existing_objects_matched().assert_consumed()
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


def export(prefix: str, config: str, vocab_file: str, path: str) -> None:
    """Exports a checkpoint with their TF-Hub exporter, masked LM included."""
    from official.legacy.bert import configs
    from official.nlp.tools import export_tfhub_lib

    export_tfhub_lib.export_model(
        path,
        bert_config=configs.BertConfig.from_json_file(config),
        model_checkpoint_path=prefix,
        with_mlm=True,
        copy_pooler_dense_to_encoder=True,
        vocab_file=vocab_file,
        do_lower_case=False,
    )


def preprocess(vocab_file: str, path: str) -> None:
    """Exports their preprocessor, cased, for 13 tokens per sequence."""
    from official.nlp.tools import export_tfhub_lib

    export_tfhub_lib.export_preprocessing(
        path,
        vocab_file=vocab_file,
        do_lower_case=False,
        default_seq_length=13,
        tokenize_with_offsets=True,
    )


if __name__ == "__main__":
    if sys.argv[1] in ("export", "preprocess"):
        globals()[sys.argv[1]](*sys.argv[2:])
    else:
        main(*sys.argv[1:])
