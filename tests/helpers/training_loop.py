"""A small BERT in the training loop, and the batches that it is trained on."""

import dataclasses

import numpy as np
import tensorflow as tf

from bert.modeling import fused_ops, losses, precision
from bert.modeling.networks import build_pretraining_model
from bert.training import train_step, training_loop
from bert.training.objective import Phase
from bert.training.optimization import AdamWeightDecay, WarmupLinearDecay
from bert.training.saver import Saver
from bert.training.settings import Training
from bert.training.trainer import Trainer
from tests.helpers import run_folders, small, tiny

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


def make_steps(
    replicas=1, use_xla=False, kind="float32", remat=False, parts=1, drop=0.0
):
    strategy = tiny.strategy_of(replicas)
    rate = WarmupLinearDecay(0.01, STEPS, 2)
    config = small.config(
        num_hidden_layers=1,
        hidden_dropout_prob=drop,
        attention_probs_dropout_prob=drop,
    )
    with strategy.scope():
        with precision.computing_in(kind):
            model = build_pretraining_model(config)
        optimizer = AdamWeightDecay(rate)
        optimizer.build(model.trainable_variables)
    objective = tiny.objective_of(
        losses.PRETRAINING,
        rate,
    )
    return train_step.TrainStep(
        model,
        objective,
        optimizer,
        strategy,
        3,
        fused_ops.step_scope(config, remat),
        losses.batch_tokens,
        use_xla,
        parts,
    )


def make_run(made, folder, objective=None, **changed):
    """A run of steps, whose variables have names without a meaning.

    Args:
        made: the steps.
        folder: of its checkpoints.
        objective: changes of the objective.
        **changed: changes of the settings.
    """
    variables = made.model.trainable_variables
    settings = {"do_train": True, "log_steps": 1, "iterations_per_loop": 100}
    made.objective = dataclasses.replace(
        made.objective, **{"metric": "score", **(objective or {})}
    )
    return Trainer(
        Training(**{**settings, **changed}),
        made,
        {f"v{i}": variable for i, variable in enumerate(variables)},
        Saver(str(folder), 9),
        Saver(f"{folder}/best", 1),
        str(folder),
        {},
    )


def phase(make_batches, last=STEPS, rows=ROWS, **named):
    return Phase(last, rows, make_batches, **named)


def train(made, folder, validate=None, **changed):
    """Trains; returns the lines of `metrics.jsonl`."""
    changed = {"save_checkpoints_steps": 5, **changed}
    run = make_run(made, folder, **changed)
    training_loop.fit(run, [phase(batches)], validate)
    return run_folders.points(folder)
