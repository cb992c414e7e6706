"""A small BERT in the training loop, and the batches that it is trained on."""

import numpy as np
import tensorflow as tf

from modeling import dropout, losses
from modeling.models import build_pretraining_model
from tests.helpers import run_folders, small
from training import logs, loop, steps
from training.optimization import AdamWeightDecay, WarmupLinearDecay

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


def make_trainer(strategy=None, use_xla=False, seed=3, peak=0.01, **changed):
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
    return loop.Trainer(steps.Steps(task, optimizer, strategy, seed, use_xla))


def schedule(**changed):
    values = {
        "num_train_steps": STEPS,
        "log_steps": 1,
        "save_steps": 5,
        "eval_steps": 0,
        "iterations_per_loop": 100,
        "batch_size": ROWS,
        "learning_rate": WarmupLinearDecay(0.01, STEPS, 2),
    }
    return loop.Schedule(**{**values, **changed})


def train(trainer, folder, plan=None, save=None, evaluate=None):
    """Trains; returns the lines of `metrics.jsonl`."""
    log = logs.TrainingLog(str(folder), trainer.steps.optimizer.step)
    nothing = lambda: None  # noqa: E731
    trainer.train(
        batches(trainer.steps.optimizer.step),
        plan or schedule(),
        log,
        save or nothing,
        evaluate or nothing,
    )
    return run_folders.points(folder)
