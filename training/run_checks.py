"""What is odd about the files of a run."""

import json
import os

from durable import sync_and_hash
from errors import UserError
from findings import Finding, fine, suspicious, wrong


def check_files(folder: str) -> list[Finding]:
    """Looks for damaged checkpoints, and for what killed runs left.

    Args:
        folder: the run's output_dir.
    """
    from training import saver

    found = []
    steps = saver.Saver(folder).steps()
    for step in steps:
        path = os.path.join(folder, f"{saver.PREFIX}-{step}")
        try:
            _check_parts(folder, read_description(path))
        except UserError as error:
            found.append(wrong(str(error)))
    if steps and not found:
        whole = ", ".join(map(str, steps))
        found.append(fine(f"checkpoints {whole} whole", path=folder))
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
    return found


def read_description(prefix: str) -> dict:
    """The JSON that stands beside a checkpoint.

    Raises:
        UserError: it cannot be read.
    """
    path = f"{prefix}.json"
    try:
        with open(path, encoding="utf-8") as file:
            description = json.load(file)
        for part in description["files"].values():
            int(part["bytes"]), str(part["sha256"])
        return {**description, "settings": dict(description["settings"])}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"not a checkpoint's description: {error!r}", path=path
        ) from None


def _check_parts(folder: str, description: dict) -> None:
    for name, expected in description["files"].items():
        path = os.path.join(folder, name)
        fix = "remove this checkpoint: the run goes on from the one before"
        if not os.path.exists(path):
            raise UserError("missing", path=path, fix=fix)
        size = os.path.getsize(path)
        if size != expected["bytes"]:
            raise UserError(
                f"has {size} bytes",
                path=path,
                expected=f"{expected['bytes']}",
                fix=fix,
            )
        if sync_and_hash(path) != expected["sha256"]:
            raise UserError(
                "not what was written (sha256 differs)", path=path, fix=fix
            )
