"""Checks labels and splits against a trained model's records."""

from bert.common.errors import UserError
from bert.common.progress import say
from bert.data.label_kinds import Labels
from bert.tasks.run_folder import RunFolder, shown


def check_weights(path: str, task: dict, labels: Labels) -> None:
    """Checks the labels of a run against its initial weights.

    Labels may be renamed, such as 1 to positive.

    Args:
        path: str. The weights.
        task: dict. Their `task.json`.
        labels: the labels of this run.

    Raises:
        UserError: the kind of labels differs, or the names are in another
            order.
    """
    names = list(labels.names)
    if task["kind"] != labels.kind:
        raise UserError(
            f"was trained for {task['kind']}",
            path=path,
            expected=labels.kind,
            fix="pass the flags that it was trained with (--multi_label, "
            "--regression)",
        )

    # Reordered labels would silently swap classes.
    if names != task["labels"] and sorted(names) == sorted(task["labels"]):
        raise UserError(
            f"was trained with the labels {shown(task)}",
            path=path,
            expected=shown({"labels": names}),
            fix="pass --labels in the order of training, with --task_name=tsv",
        )


def warn_of_share(folder: RunFolder) -> None:
    """Warns if --eval_share may select examples used for training.

    Args:
        folder: the folder of a run that does not train.
    """
    settings, path = folder.settings, folder.trained
    share = settings.eval_share
    if not (share and settings.do_eval):
        return

    # Another fraction or seed splits the file differently.
    given = {"eval_share": share, "random_seed": settings.random_seed}
    for name, value in given.items():
        trained = folder.recorded.get(name, value)
        if trained != value:
            say(
                f"warning: --{name}={value}, but {path} was trained with "
                f"{trained}: the evaluation includes training examples"
            )
