"""KerasHub on TensorFlow, for benchmarks.peers_in_turns.

    python keras_hub_step.py TASK CONFIG.json PRECISION MODE B S P

TASK is `train` or `infer`, PRECISION `float32` or `bfloat16`, MODE `graph` or
`compiled` (XLA). Runs in the environment that `make peers` installs.
"""

import functools
import json
import sys

import keras
import keras_hub
import tensorflow as tf
from batches import encoder_batch, training_batch

from serve import serve

INPUTS = {
    "input_ids": "token_ids",
    "input_mask": "padding_mask",
    "segment_ids": "segment_ids",
}


def build(config: dict, task: str) -> keras.Model:
    """Builds their backbone and heads with these sizes."""
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=config["vocab_size"],
        num_layers=config["num_hidden_layers"],
        num_heads=config["num_attention_heads"],
        hidden_dim=config["hidden_size"],
        intermediate_dim=config["intermediate_size"],
        dropout=config["hidden_dropout_prob"],
        max_sequence_length=config["max_position_embeddings"],
        num_segments=config["type_vocab_size"],
    )
    found = backbone(backbone.input)
    scores = keras.layers.Dense(2, name="scores", dtype="float32")
    pooled = scores(found["pooled_output"])
    if task == "infer":
        return keras.Model(backbone.input, pooled)
    positions = keras.Input((None,), dtype="int32", name="mask_positions")
    head = keras_hub.layers.MaskedLMHead(
        vocabulary_size=config["vocab_size"],
        token_embedding=backbone.token_embedding,
        intermediate_activation=functools.partial(
            keras.activations.gelu, approximate=True
        ),
        name="words",
    )
    words = head(found["sequence_output"], positions)
    return keras.Model(
        {**backbone.input, "mask_positions": positions},
        {"words": words, "scores": pooled},
    )


def make(task, path, precision, mode, *sizes):
    """Returns the function to run, and versions."""
    keras.utils.set_random_seed(1)
    if precision == "bfloat16":
        keras.config.set_dtype_policy("mixed_bfloat16")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    model = build(config, task)
    versions = {
        "keras_hub": keras_hub.__version__,
        "keras": keras.__version__,
        "tensorflow": tf.__version__,
    }
    if task == "infer":
        call = tf.function(
            lambda x: tf.reduce_sum(model(x, training=False)),
            jit_compile=mode == "compiled",
        )

        def infer(batch_size: int, length: int) -> float:
            arrays = encoder_batch(config["vocab_size"], batch_size, length)
            return call({INPUTS[k]: tf.constant(v) for k, v in arrays.items()})

        return infer, versions
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(
        keras.optimizers.AdamW(1e-4, weight_decay=0.01, global_clipnorm=1.0),
        loss={"words": loss, "scores": loss},
        jit_compile=mode == "compiled",
    )
    arrays = training_batch(config["vocab_size"], *sizes)
    x = {name: arrays[ours] for ours, name in INPUTS.items()}
    x["mask_positions"] = arrays["masked_lm_positions"]
    y = {
        "words": arrays["masked_lm_ids"],
        "scores": arrays["next_sentence_labels"],
    }
    x, y = tf.nest.map_structure(tf.constant, (x, y))

    def step() -> float:
        return model.train_on_batch(x, y, return_dict=True)["loss"]

    return step, versions


if __name__ == "__main__":
    words = sys.argv[1:]
    serve(lambda: make(*words[:4], *map(int, words[4:])))
