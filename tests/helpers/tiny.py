"""A tiny network and task for tests of training; no BERT."""

import dataclasses

import keras
import numpy as np
import tensorflow as tf

from bert.modeling import dropout, precision
from bert.modeling.losses import PRETRAINING, Loss
from bert.training import train_step
from bert.training.objective import Objective
from bert.training.optimization import AdamWeightDecay

ROWS, WIDTH = 8, 5


def batch(seed, poison=None):
    """Examples of uneven weights: a mean of means would be another loss."""
    rng = np.random.default_rng(seed)
    made = {
        "x": rng.normal(size=(ROWS, WIDTH)).astype("f4"),
        "y": rng.normal(size=(ROWS, 1)).astype("f4"),
        "weight": rng.integers(0, 7, (ROWS, 1)).astype("f4"),
    }
    made["weight"][-1] = 1
    if poison is not None:
        made["y"][-1] = poison  # on the last replica, in the last micro-batch
    return made


def batches(*poisons):
    made = [batch(seed, poison) for seed, poison in enumerate(poisons)]
    stacked = {name: np.stack([b[name] for b in made]) for name in made[0]}
    return iter(tf.data.Dataset.from_tensor_slices(stacked))


class SquaredError(Loss):
    name, has_accuracy = "error", False

    def weight(self, batch):
        return tf.reduce_sum(batch["weight"])

    def sums(self, batch, outputs):
        error = tf.cast(outputs["y"], tf.float32) - batch["y"]
        loss = tf.reduce_sum(tf.square(error) * batch["weight"])
        return {"loss": loss, "weight": tf.reduce_sum(batch["weight"])}


def sums_of(batch, outputs, losses=PRETRAINING):
    """The sums of losses, with their names."""
    return {
        f"{loss.name}_{name}": x
        for loss in losses
        for name, x in loss.sums(batch, outputs).items()
    }


def strategy_of(replicas):
    if replicas == 1:
        return tf.distribute.OneDeviceStrategy("CPU:0")
    return tf.distribute.MirroredStrategy(
        [f"CPU:{i}" for i in range(replicas)],
        tf.distribute.ReductionToOneDevice(),
    )


def make_steps(
    replicas=1,
    accumulation_steps=1,
    use_xla=False,
    rate=0.0,
    kind="float32",
    rule="bert_adam",
    schedule=0.01,
):
    strategy = strategy_of(replicas)
    with strategy.scope():
        with precision.computing_in(kind):
            model = network(rate)
        optimizer = AdamWeightDecay(schedule, rule=rule)
        optimizer.build(model.trainable_variables)
    objective = objective_of((SquaredError(),))
    return train_step.TrainStep(
        model,
        objective,
        optimizer,
        strategy,
        3,
        dropout.dropout_seed,
        tokens,
        use_xla,
        accumulation_steps,
    )


def tokens(batch):
    return tf.reduce_sum(tf.cast(batch["weight"] > 0, tf.float32))


def objective_of(losses, rate=lambda step: tf.constant(0.0), **named):
    """An objective of which only the losses are used."""
    return Objective(losses, rate, **named)


def again(made, seed=3, use_xla=False, **changed):
    """Other steps with the same network; `changed` of their objective."""
    return train_step.TrainStep(
        made.model,
        dataclasses.replace(made.objective, **changed),
        made.optimizer,
        made.strategy,
        seed,
        dropout.dropout_seed,
        tokens,
        use_xla,
    )


def network(rate):
    def dense(units, name, seed):
        start = keras.initializers.RandomNormal(stddev=0.5, seed=seed)
        return keras.layers.Dense(units, kernel_initializer=start, name=name)

    x = keras.Input((WIDTH,), name="x")
    hidden = dropout.Dropout(rate, 1)(keras.ops.tanh(dense(7, "a", 1)(x)))
    return keras.Model({"x": x}, {"y": dense(1, "b", 2)(hidden)})


def take(made, *poisons):
    """Takes a step on each batch; returns `Steps.train`'s sums."""
    return made.train(batches(*poisons), tf.constant(len(poisons))).numpy()


def tensors(made):
    optimizer = made.optimizer
    variables = made.model.trainable_variables
    held = [*variables, *optimizer.adam_m, *optimizer.adam_v]
    return [variable.numpy() for variable in held]


def bits(made):
    return [value.tobytes() for value in tensors(made)]
