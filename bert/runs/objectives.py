"""Network and loss of a task."""

import keras

from bert.data.labels import MULTI_LABEL
from bert.modeling import (
    checkpoints,
    embedding_losses,
    networks,
    task_losses,
)
from bert.modeling.config import BertConfig
from bert.modeling.losses import Loss
from bert.tasks import metrics
from bert.tasks.classification.settings import Settings as ClassifierSettings
from bert.tasks.classification.task import TextClassification
from bert.tasks.finetuning_settings import FineTuning, FineTuningT
from bert.tasks.similarity.settings import Settings as SimilaritySettings
from bert.tasks.similarity.task import TextEmbedding
from bert.tasks.task import Task
from bert.training.objective import Objective
from bert.training.optimization import WarmupLinearDecay


def build_network(
    task: Task, config: BertConfig, settings: FineTuning
) -> keras.Model:
    """Builds the network of a task, and freezes its first layers.

    Args:
        task: Task. The task of the run.
        config: BertConfig. Sizes of the network.
        settings: FineTuning. Settings of the script.
    """
    seed = settings.random_seed
    if task.pooling_config:
        pooling = task.pooling_config.pooling
        network = networks.build_similarity_model(config, pooling, seed)
    else:
        head, size = task.head, task.num_outputs
        assert head and size, "a task without a pooling has a head"
        network = networks.build(config, head, size, seed)

    # Frozen before the optimizer is built, so that it has no moments for them.
    named = checkpoints.model_variables(network)
    checkpoints.freeze_layers(named, settings.freeze_layers)
    return network


def objective_of(
    task: Task[FineTuningT],
    config: BertConfig,
    settings: FineTuningT,
    schedule: WarmupLinearDecay,
) -> Objective:
    """Returns the objective of a run.

    Args:
        task, config, settings: see `build_network`.
        schedule: WarmupLinearDecay. Learning rate of each step.
    """
    return Objective(
        (_loss(task, config, settings),),
        schedule,
        schedule.num_train_steps,
        schedule.num_warmup_steps,
        f"{task.prefix}{task.metric}",
        metrics.sign(task.metric),
    )


def _loss(task: Task, config: BertConfig, settings: FineTuning) -> Loss:
    """Returns the loss of a task."""
    if isinstance(task, TextClassification):
        assert isinstance(settings, ClassifierSettings)
        return _loss_of_labels(task, settings)
    if isinstance(task, TextEmbedding):
        assert isinstance(settings, SimilaritySettings)
        if settings.teacher:
            return embedding_losses.TeacherDistance()
        size = config.hidden_size
        sizes = settings.sizes(size, task.pooling_config.size(size))
        return embedding_losses.EmbeddingLoss(
            settings.loss, settings.scale, sizes
        )
    assert task.loss, "the losses of other tasks are chosen above"
    return getattr(task_losses, task.loss)()


def _loss_of_labels(
    task: TextClassification, settings: ClassifierSettings
) -> Loss:
    """Returns the loss of labels, and of the outputs of --teacher."""
    size, is_multi_label = task.labels.size, task.labels.kind == MULTI_LABEL
    hard = task_losses.of_labels(
        size, is_multi_label, task.class_weights, settings.label_smoothing
    )
    if not settings.teacher:
        return hard
    temperature = settings.distill_temperature
    soft = task_losses.TeacherLoss(size, is_multi_label, temperature)
    return task_losses.Distilled(hard, soft)
