"""The labels that a model was trained with, in its `task.json`."""

from bert.common.errors import UserError
from bert.common.progress import say
from bert.data.label_kinds import Labels
from bert.modeling.formats import checkpoint_files
from bert.tasks.classification.settings import Settings
from bert.tasks.run_folder import shown


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
            fix="pass the flags of its training (--multi_label, --regression)",
        )

    # The same names in another order would exchange the answers.
    if names != task["labels"] and sorted(names) == sorted(task["labels"]):
        raise UserError(
            f"was trained with the labels {shown(task)}",
            path=path,
            expected=shown({"labels": names}),
            fix="pass --labels in the order of training, with --task_name=tsv",
        )


def warn_of_share(settings: Settings, path: str) -> None:
    """Warns if examples of --eval_share may be examples of training.

    Args:
        settings: of a run that does not train.
        path: the weights that it evaluates.
    """
    share, shared = settings.own.eval_share, settings.finetuning
    if not (share and shared.do_eval):
        return

    # Another share or seed divides the file in another place.
    recorded = checkpoint_files.recorded_settings(path)
    given = {"eval_share": share, "random_seed": shared.training.random_seed}
    for name, value in given.items():
        trained = recorded.get(name, value)
        if trained != value:
            say(
                f"warning: --{name}={value}, but {path} was trained with "
                f"{trained}: examples of its training are evaluated too"
            )
