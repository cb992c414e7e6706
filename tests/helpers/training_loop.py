"""A small BERT in the training loop, and the batches that it is trained on."""

import numpy as np
import tensorflow as tf

from bert.modeling import dropout, losses
from bert.modeling.models import build_pretraining_model
from bert.training import loop, steps
from bert.training.optimization import AdamWeightDecay, WarmupLinearDecay
from bert.training.saver import Saver
from tests.helpers import run_folders, small

ROWS, STEPS = 4, 7


def batches(start=0):
    """An endless dataset whose batch at each step is always the same."""
    rows = [small.batch(seed, ROWS) for seed in range(11)]
    # Uneven masks: a mean of the replicas' means would be another loss.
    for batch in rows:
        batch["masked_lm_weights"][0] = 1
        batch["masked_lm_weights"][-1] = [1, 0, 0]
    stacked = {name: np.stack([b[name] for b in rows]) for name in rows[0]}
    return tf.data.Dataset.from_tensor_slices(stacked).repeat().skip(start)


def make_steps(strategy=None, use_xla=False, seed=3, peak=0.01, **changed):
    strategy = strategy or tf.distribute.OneDeviceStrategy("CPU:0")
    rate = WarmupLinearDecay(peak, STEPS, 2)
    with strategy.scope():
        config = small.config(**{"num_hidden_layers": 1, **changed})
        model = build_pretraining_model(config)
        optimizer = AdamWeightDecay(rate)
        optimizer.build(model.trainable_variables)
    task = steps.StepTask(
        model,
        losses.OBJECTIVES,
        losses.pretraining_weights,
        losses.pretraining_sums,
        dropout.dropout_seed,
        losses.batch_tokens,
    )
    return steps.Steps(task, optimizer, strategy, seed, use_xla)


def make_trainer(made, folder):
    """A trainer of steps, whose variables have names without a meaning."""
    variables = made.task.model.trainable_variables
    return loop.Trainer(
        made,
        {f"v{i}": variable for i, variable in enumerate(variables)},
        Saver(str(folder), 9),
        Saver(f"{folder}/best", 1),
        str(folder),
        {},
    )


def schedule(make_batches, **changed):
    values = {
        "num_train_steps": STEPS,
        "log_steps": 1,
        "save_steps": 5,
        "eval_steps": 0,
        "iterations_per_loop": 100,
        "batch_size": ROWS,
        "learning_rate": WarmupLinearDecay(0.01, STEPS, 2),
    }
    return loop.Schedule(make_batches, **{**values, **changed})


def train(made, folder, evaluate=None, **changed):
    """Trains; returns the lines of `metrics.jsonl`."""
    plan = schedule(lambda: batches(made.optimizer.step), **changed)
    validation = evaluate and loop.Validation(evaluate, "score")
    make_trainer(made, folder).train([plan], validation)
    return run_folders.points(folder)
