"""Model Garden, for benchmarks.peers_in_turns.

    python model_garden_step.py TASK CONFIG.json PRECISION MODE B S P

TASK is `train` or `infer`, PRECISION `float32` or `bfloat16`, MODE `graph` or
`compiled` (XLA). Runs in the environment that `make peers` installs.
"""

import json
import sys

import tensorflow as tf
import tf_keras
from batches import encoder_batch, training_batch
from model_garden_outputs import build
from official.nlp import optimization

from serve import serve

INPUTS = {
    "input_ids": "input_word_ids",
    "input_mask": "input_mask",
    "segment_ids": "input_type_ids",
}


def training_step(model, arrays: dict, mode: str):
    """Returns a function that takes a step and returns the loss."""
    optimizer = optimization.AdamWeightDecay(
        learning_rate=1e-4,
        weight_decay_rate=0.01,
        exclude_from_weight_decay=["LayerNorm", "layer_norm", "bias"],
    )
    batch = {name: tf.constant(array) for name, array in arrays.items()}
    inputs = {name: batch[ours] for ours, name in INPUTS.items()}
    inputs["masked_lm_positions"] = batch["masked_lm_positions"]
    pairs = {
        "mlm_logits": batch["masked_lm_ids"],
        "next_sentence": batch["next_sentence_labels"][:, 0],
    }

    # The head has its own pooler, so the encoder's gets no gradient.
    variables = [
        v for v in model.trainable_variables if "pooler_transform" not in v.name
    ]

    @tf.function(jit_compile=mode == "compiled")
    def gradients():
        with tf.GradientTape() as tape:
            outputs = model(inputs, training=True)
            loss = tf.add_n(
                [
                    tf.reduce_mean(
                        tf.nn.sparse_softmax_cross_entropy_with_logits(
                            label, tf.cast(outputs[name], tf.float32)
                        )
                    )
                    for name, label in pairs.items()
                ]
            )
        found = tape.gradient(loss, variables)
        return loss, [tf.convert_to_tensor(x) for x in found]

    @tf.function
    def step():
        loss, found = gradients()
        # This clips by the global norm.
        optimizer.apply_gradients(zip(found, variables))
        return loss

    return step


def make(task, path, precision, mode, *sizes):
    """Returns the function to run, and versions."""
    if precision == "bfloat16":
        tf_keras.mixed_precision.set_global_policy("mixed_bfloat16")
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    model = build(config)
    versions = {"tensorflow": tf.__version__, "tf_keras": tf_keras.__version__}
    if task == "train":
        arrays = training_batch(config["vocab_size"], *sizes)
        return training_step(model, arrays, mode), versions

    @tf.function(jit_compile=mode == "compiled")
    def call(x):
        outputs = model(x, training=False)
        return tf.reduce_sum(tf.cast(outputs["next_sentence"], tf.float32))

    def infer(batch_size: int, length: int) -> float:
        arrays = encoder_batch(config["vocab_size"], batch_size, length)
        x = {INPUTS[k]: tf.constant(v) for k, v in arrays.items()}
        x["masked_lm_positions"] = tf.zeros([batch_size, 1], tf.int32)
        return call(x)

    return infer, versions


if __name__ == "__main__":
    words = sys.argv[1:]
    serve(lambda: make(*words[:4], *map(int, words[4:])))
