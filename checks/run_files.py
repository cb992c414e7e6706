"""What is odd about the files of a run."""

import os

from common.findings import Finding, fine, suspicious, wrong


def check_files(folder: str) -> tuple[list[Finding], dict]:
    """Looks for damaged checkpoints, and for what killed runs left.

    Args:
        folder: the run's output_dir.

    Returns:
        what was found, and the description of the newest whole checkpoint.
    """
    from training import saver

    found, whole, description = [], [], {}
    steps = saver.Saver(folder).steps()
    for step in steps:
        path = os.path.join(folder, f"{saver.PREFIX}-{step}")
        try:
            description = saver.check_whole(path)
            whole.append(step)
        except saver.DAMAGE as error:
            found.append(
                wrong(
                    f"damaged: {error}",
                    path=path,
                    fix="remove it: the run goes on from the one before",
                )
            )
    if whole:
        told = ", ".join(map(str, whole))
        found.append(fine(f"whole checkpoints: {told}", path=folder))
    described = {f"{saver.PREFIX}-{step}.index" for step in steps}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name.startswith(".partial") or name.endswith((".partial", "_temp")):
            found.append(
                suspicious(
                    "left by a run that was killed, or written just now",
                    path=path,
                    fix="remove it if no run is going on",
                )
            )
        elif (
            name.startswith(f"{saver.PREFIX}-")
            and name.endswith(".index")
            and name not in described
        ):
            found.append(
                wrong(
                    "has no description beside it",
                    path=path,
                    expected=name.removesuffix(".index") + ".json",
                    fix="this checkpoint is not whole: remove it",
                )
            )
    return found + _check_state(description, folder), description


def _check_state(description: dict, folder: str) -> list[Finding]:
    """Steps that gave nothing to learn from, at the newest checkpoint."""
    trainer = description.get("state", {}).get("trainer", {})
    bad = trainer.get("steps", {}).get("bad_steps", 0)
    if not bad:
        return []
    return [
        suspicious(
            f"the last {bad} steps before step {description['step']} gave no "
            "finite loss and gradient",
            path=folder,
            fix="look at the rows that the log names, or lower --learning_rate",
        )
    ]
