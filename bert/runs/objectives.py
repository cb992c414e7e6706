"""Objectives of the tasks: network and losses, by the head of a task."""

import functools
from collections.abc import Callable
from typing import Any

import keras

from bert.data.labels import CLASSES, MULTI_LABEL, REGRESSION
from bert.modeling import (
    checkpoints,
    embedding_losses,
    networks,
    task_losses,
)
from bert.modeling.config import BertConfig
from bert.modeling.task_heads import (
    CHOICES,
    CLASSIFIER,
    COSINE,
    SPANS,
    TOKENS,
)
from bert.tasks import metrics
from bert.training.objective import Objective
from bert.training.optimization import WarmupLinearDecay

_LOSSES: dict[str, tuple] = {  # head -> name, normalizers and sums of its loss
    SPANS: (
        task_losses.SPAN,
        task_losses.span_weights,
        task_losses.span_sums,
    ),
    TOKENS: (
        task_losses.TOKEN,
        task_losses.token_weights,
        task_losses.token_sums,
    ),
    CHOICES: (
        task_losses.CHOICE,
        task_losses.choice_weights,
        task_losses.choice_sums,
    ),
}


def objective_of(
    task: Any,
    config: BertConfig,
    settings: Any,
    learning_rate: WarmupLinearDecay,
) -> Objective:
    """Returns the objective of a run.

    Args:
        task: Task. The task of the run.
        config: BertConfig. Sizes of the network.
        settings: settings of the script.
        learning_rate: WarmupLinearDecay. Learning rate of each step.
    """
    has_accuracy, compares_rows = True, False
    if task.head == CLASSIFIER:
        name, normalizers = task_losses.LABELS, task_losses.label_weights
        sums = _class_sums(task, settings)
        if settings.teacher:
            sums = _distilled(task, settings, sums)
        has_accuracy = task.labels.kind != REGRESSION
    elif task.head is None:
        name, normalizers = task_losses.LABELS, task_losses.label_weights
        sums, compares_rows = _vector_sums(task, config, settings)
        has_accuracy = False
    else:
        name, normalizers, sums = _LOSSES[task.head]

    return Objective(
        functools.partial(_network, task, config, settings),
        (name,),
        normalizers,
        sums,
        learning_rate,
        learning_rate.num_train_steps,
        learning_rate.num_warmup_steps,
        ("loss", "accuracy") if has_accuracy else ("loss",),
        f"{task.prefix}{task.metric}",
        metrics.sign(task.metric),
        compares_rows,
    )


def _class_sums(task: Any, settings: Any) -> Callable:
    """The loss function, with class weights and label smoothing."""
    if task.labels.kind == REGRESSION:
        return task_losses.number_sums
    sums = {
        CLASSES: task_losses.class_sums,
        MULTI_LABEL: task_losses.multi_label_sums,
    }
    return functools.partial(
        sums[task.labels.kind],
        weights=task.class_weights,
        smoothing=settings.label_smoothing,
    )


def _distilled(task: Any, settings: Any, hard_sums: Callable) -> Callable:
    """The loss function of labels, with that of a teacher."""
    soft_loss = task_losses.teacher_loss(
        task.labels.size,
        task.labels.kind == MULTI_LABEL,
        settings.distill_temperature,
    )
    return functools.partial(
        task_losses.distilled_sums, hard_sums=hard_sums, soft_loss=soft_loss
    )


def _vector_sums(
    task: Any, config: BertConfig, settings: Any
) -> tuple[Callable, bool]:
    """The loss function of embeddings, and whether it compares rows."""
    if settings.teacher:
        return embedding_losses.teacher_sums, False
    size = config.hidden_size
    sizes = settings.sizes(size, task.pooling_config.size(size))
    sums = embedding_losses.sums_of(settings.loss, settings.scale, sizes)
    return sums, settings.loss != COSINE


def _network(task: Any, config: BertConfig, settings: Any) -> keras.Model:
    """Builds the network, and freezes its first layers."""
    seed = settings.random_seed
    if task.head is None:
        pooling = task.pooling_config.pooling
        network = networks.build_similarity_model(config, pooling, seed)
    else:
        network = networks.build(config, task.head, task.num_outputs, seed)

    # Frozen before the optimizer is built, so that it has no moments for them.
    named = checkpoints.model_variables(network)
    checkpoints.freeze_layers(named, settings.freeze_layers)
    return network
