"""The labels that a model was trained with, in its `task.json`."""

import os

from common import storage
from common.errors import UserError
from common.progress import say
from modeling.formats import model_folder
from tasks import run_folder
from tasks.classification.examples import Labels
from tasks.classification.settings import Settings


def of_weights(settings: Settings) -> tuple[str, dict] | None:
    """Finds the weights of a run that does not train, and their labels.

    Returns:
        the path of the weights and the `task.json` beside them; None if there
        is none, or the run trains.

    Raises:
        UserError: the file is damaged.
    """
    training = settings.tuning.training
    if training.do_train:
        return None
    path, task = training.output_dir, None
    if run_folder.has_checkpoint(path):
        task = model_folder.recorded_task(path)
    elif training.model.init_checkpoint:
        path = training.model.init_checkpoint
        task = model_folder.task_of(path)
    return (path, task) if task else None


def check_weights(path: str, task: dict, labels: Labels) -> None:
    """Rejects labels that weights were not trained with.

    Labels may have other names, such as positive for 1.

    Args:
        path: the weights.
        task: their `task.json`.
        labels: the labels of this run.

    Raises:
        UserError: the kind differs, or the order of the same names.
    """
    names = list(labels.names)
    if task["kind"] != labels.kind:
        raise UserError(
            f"was trained for {task['kind']}",
            path=path,
            expected=labels.kind,
            fix="pass the flags of its training (--multi_label, --regression), "
            "or correct its task.json",
        )
    if names != task["labels"] and sorted(names) == sorted(task["labels"]):
        raise UserError(
            f"was trained with the labels {_shown(task)}",
            path=path,
            expected=_shown({"labels": names}),
            fix="pass --labels in the order of training, with --task_name=tsv",
        )


def warn_of_share(settings: Settings, path: str) -> None:
    """Warns if examples of --eval_share may be examples of training.

    Args:
        settings: of a run that does not train.
        path: the weights that it evaluates.
    """
    share, tuning = settings.own.eval_share, settings.tuning
    if not (share and tuning.do_eval):
        return
    recorded = model_folder.recorded_settings(path)
    given = {"eval_share": share, "random_seed": tuning.training.random_seed}
    for name, value in given.items():
        trained = recorded.get(name, value)
        if trained != value:
            say(
                f"warning: --{name}={value}, but {path} was trained with "
                f"{trained}: examples of its training are evaluated too"
            )


def check_folder(folder: str, described: dict) -> None:
    """Checks that the checkpoints of a folder have the labels of a run.

    Args:
        folder: output_dir of the run, or the folder of several seeds.
        described: kind and names of its labels, as in `task.json`.

    Raises:
        UserError: they have other labels.
    """
    recorded = model_folder.recorded_task(folder)
    names = map(os.path.basename, storage.files_below(folder))
    if recorded and "checkpoint" in names and recorded != described:
        raise UserError(
            f"holds a run with the labels {_shown(recorded)}",
            path=folder,
            expected=_shown(described),
            fix="pass another --output_dir",
        )


def _shown(task: dict) -> str:
    labels = task["labels"]
    if not labels:
        return "(numbers)"
    more = f", ... ({len(labels)})" if len(labels) > 5 else ""
    return f"{', '.join(labels[:5])}{more}"
