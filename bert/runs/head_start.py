"""Recipe of a run: a head from the frozen encoder, then the training flags.

The head is stored in the folder of the run: an evaluation compares the run with
it (the baseline `frozen`).
"""

import dataclasses
import os

import keras
from numpy.typing import NDArray

from bert.common import storage
from bert.common.formats import array_files
from bert.common.progress import log
from bert.inference import frozen_features
from bert.modeling import checkpoints
from bert.modeling.task_heads import HEADS
from bert.runs.start import ChosenDevices
from bert.tasks import recipe
from bert.tasks.finetuning_settings import FineTuningT
from bert.tasks.labelled_task import LabelledTask
from bert.tasks.recipe import FrozenHead, Recipe, RecipeFlags
from bert.tasks.run import Run
from bert.tasks.task import Task
from bert.training import optimization
from bert.training.trainer import Trainer

FILE = "start_head.npy"


def fit(
    run: Run[FineTuningT],
    task: Task,
    rows: list,
    network: keras.Model,
    devices: ChosenDevices,
) -> FrozenHead | None:
    """Fits a head to the outputs of the initial encoder, for a recipe.

    The encoder of the network gets its initial weights.

    Args:
        run: Run. The run.
        task: Task. Task of the run.
        rows: list. Training rows.
        network: keras.Model. The network of the task.
        devices: ChosenDevices. Devices to compute on.

    Returns:
        the head; None if it is not asked for, if the run resumes, has few rows
        or random weights, or if the model has a head for these labels.
    """
    if not _wants_head(run) or run.resumed or not run.model.path:
        return None
    weights, _ = run.model.weights()
    assert task.head
    trained = weights.get(f"{HEADS[task.head].scope}output_weights")
    if trained is not None and len(trained) == task.num_outputs:
        return None

    encoder = checkpoints.encoder_of(network)
    named = checkpoints.encoder_variables(encoder)
    checkpoints.assign(named, weights, run.model.path)
    assert isinstance(task, LabelledTask)
    return frozen_features.fit_head(encoder, task, rows, devices.strategy)


def _wants_head(run: Run[FineTuningT]) -> bool:
    """Whether the recipe or a given flag asks for a head."""
    settings = run.settings
    if not (isinstance(settings, RecipeFlags) and settings.do_train):
        return False
    if "start_head" in settings.given:
        return settings.start_head
    return settings.uses_recipe


def with_recipe(
    run: Run[FineTuningT],
    task: Task,
    num_rows: int,
    head: FrozenHead | None,
    num_devices: int,
) -> Run[FineTuningT]:
    """Returns a run with the values of its recipe, if it has one; prints it.

    Args:
        run: Run. The run.
        task: Task. Task of the run.
        num_rows: int. Number of training examples.
        head: FrozenHead or None. Result of `fit`.
        num_devices: int. Number of devices that share a batch.
    """
    settings = run.settings
    if not (
        isinstance(settings, RecipeFlags)
        and settings.do_train
        and settings.uses_recipe
    ):
        return run
    assert isinstance(task, LabelledTask)

    given, config = settings.given, run.config
    if run.recorded:  # perhaps by an earlier version, without a recipe
        chosen = Recipe.of_flags(run.recorded)
        name = optimization.current_rule(chosen.optimizer)
        chosen = chosen._replace(optimizer=name)
    else:
        size = settings.train_batch_size
        chosen = recipe.choose(
            num_rows,
            size if "train_batch_size" in given else None,
            config.hidden_size,
            head,
            "start_head" in given,
            num_devices * settings.gradient_accumulation_steps,
        )

        # The learning rate and the batch size fit the chosen optimizer only.
        if "optimizer" in given and settings.optimizer != chosen.optimizer:
            chosen = chosen._replace(
                learning_rate=settings.learning_rate, train_batch_size=size
            )

    values = chosen._asdict()
    for name in given.intersection(values):
        del values[name]
    settings = dataclasses.replace(settings, **values)

    chosen = Recipe.of_flags(vars(settings))
    labels, unit = task.labels, settings.unit
    log(recipe.describe(chosen, num_rows, head, labels, config, unit))
    return dataclasses.replace(run, settings=settings)


def add(
    run: Run[FineTuningT], task: Task, head: FrozenHead | None, trainer: Trainer
) -> None:
    """Adds a head to the first weights, if the run starts with it; stores it.

    Args:
        run: Run. Result of `with_recipe`.
        task: Task. Task of the run.
        head: FrozenHead or None. Result of `fit`.
        trainer: Trainer. Trainer of the run, with its first weights.
    """
    if not head:
        return
    assert isinstance(run.settings, RecipeFlags) and task.head
    if run.settings.start_head:
        network = trainer.train_step.model
        frozen_features.add_start(network, task.head, head)
    if run.output_folder.is_chief:
        path = os.path.join(run.output_folder.shared, FILE)
        array_files.write(path, head.weights)


def read(run: Run[FineTuningT]) -> NDArray | None:
    """Reads the linear model of frozen features, [C, H + 1], if it is there."""
    path = os.path.join(run.output_folder.shared, FILE)
    if not (isinstance(run.settings, RecipeFlags) and storage.exists(path)):
        return None
    found = array_files.read(path)
    if found is None:
        log(f"warning: {path} is damaged: there is no baseline `frozen`")
    return found
