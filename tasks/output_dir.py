"""The output folder of a run: its checks and its files."""

import contextlib
import os
import pathlib
import shlex
import sys
from collections.abc import Iterable, Iterator

from common import locks, storage
from common.errors import UserError
from common.progress import say
from common.storage import write_whole
from data.text import vocabulary
from modeling.config import BertConfig
from modeling.formats import model_folder
from tasks import eval_report

VOCABULARY = "vocab.txt"
BEST = "best"  # folder of the best checkpoint


@contextlib.contextmanager
def claim(folder: str) -> Iterator[None]:
    """Reserves a folder for one process that trains.

    The folder is created, and removed again if it stays empty. The lock ends
    with the process. On remote storage, which has no locks, nothing is done.

    Args:
        folder: output_dir of the run.

    Raises:
        UserError: another process trains in the folder, which the message
            names.
        OSError: the folder cannot be written.
    """
    if storage.is_remote(folder):
        yield
        return
    _check_is_folder(folder)
    path = pathlib.Path(folder).absolute()
    with contextlib.ExitStack() as held:
        new = [x for x in (path, *path.parents) if not x.exists()]
        for each in reversed(new):  # the last one is removed first
            held.callback(_remove_empty, each)
        path.mkdir(parents=True, exist_ok=True)
        held.enter_context(locks.hold(str(path / ".lock"), folder))
        yield


def _remove_empty(folder: pathlib.Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


def check(folder: str, config: BertConfig, vocab_file: str | None) -> None:
    """Rejects a folder with a run of another network or vocabulary.

    Args:
        folder: output_dir of the run.
        config: sizes of the network.
        vocab_file: the vocabulary; None: unknown.

    Raises:
        UserError: the config or the vocabulary differs, or the folder is a
            file.
    """
    _check_is_folder(folder)
    path = os.path.join(folder, "bert_config.json")
    if storage.exists(path) and BertConfig.from_json_file(path) != config:
        raise UserError(
            "holds a run with another config",
            path=folder,
            fix="pass another --output_dir, or the config of this run",
        )
    path = os.path.join(folder, VOCABULARY)
    if vocab_file and storage.exists(path):
        fix = "pass another --output_dir, or the run's vocabulary"
        vocabulary.check_same(vocab_file, path, fix)


def _check_is_folder(folder: str) -> None:
    if storage.exists(folder) and not storage.is_folder(folder):
        raise UserError("is a file", path=folder, expected="a folder")


def has_checkpoint(folder: str) -> bool:
    """Returns whether a folder holds the checkpoints of a run; "": none."""
    return bool(folder) and storage.exists(os.path.join(folder, "checkpoint"))


def check_checkpoint(checkpoint: str) -> None:
    """Rejects a prefix or folder without a checkpoint, without TensorFlow.

    Raises:
        UserError: there is no file with the name.
    """
    if not storage.any_starts_with(checkpoint):
        raise UserError(
            "no such checkpoint",
            path=checkpoint,
            expected=f"the file {checkpoint}.index, or a folder of checkpoints",
            fix="check --init_checkpoint",
        )


def check_beside(checkpoint: str, vocab_file: str) -> None:
    """Rejects a vocabulary with other ids than that of a checkpoint.

    New words may fill the `[unusedN]` slots, or follow the last token.

    Args:
        checkpoint: prefix or folder; its vocabulary is the file beside it, in
            the assets of a SavedModel, or in the folder of the run.
        vocab_file: the vocabulary.

    Raises:
        UserError: if a token has another id.
    """
    is_folder = storage.is_folder(checkpoint)
    folder = checkpoint if is_folder else os.path.dirname(checkpoint)
    paths = [os.path.join(folder, VOCABULARY), model_folder.asset(folder)]
    if os.path.basename(folder.rstrip("/")) == BEST:
        run = os.path.dirname(folder.rstrip("/"))
        paths.append(os.path.join(run, VOCABULARY))
    for path in paths:
        if storage.exists(path):
            fix = f"pass --vocab_file={path}"
            vocabulary.check_same(vocab_file, path, fix, may_extend=True)


def warn_of_changes(before: dict, now: dict, decisive: Iterable[str]) -> None:
    """Warns if a run is resumed with changed settings.

    Args:
        before: settings in the checkpoint, which may lack flags.
        now: settings of this process.
        decisive: names of the flags that are marked `resume`.
    """
    changed = [
        f"--{name} was {before[name]}, is {now[name]}"
        for name in decisive
        if before.get(name, now[name]) != now[name]
    ]
    # Checkpoints of the first version of dropout do not name it.
    old = {"dropout": "version 1", **before["environment"]}
    new = now["environment"]
    changed += [
        f"{name} was {old[name]}, is {new.get(name)}"
        for name in old
        if old[name] != new.get(name)
    ]
    if before["records"] != now["records"]:
        changed.append("the records differ")
    if changed:
        say(
            f"warning: {'; '.join(changed)}: the run continues, but is no "
            "longer bit-reproducible, and may see other examples"
        )


def check_steps(folder: str, step: int, schedule) -> None:
    """Compares the step of the run with the requested steps.

    Args:
        folder: output_dir of the run.
        step: number of completed steps.
        schedule: has num_train_steps and num_warmup_steps.

    Raises:
        UserError: if the run is past its last step.
    """
    last, warmup = schedule.num_train_steps, schedule.num_warmup_steps
    if step > last:
        raise UserError(
            f"the checkpoint is at step {step}",
            path=folder,
            expected=f"at most {last}, the last step",
            fix="train for more steps, or pass another --output_dir",
        )
    if step == last:
        say(f"finished: {folder} is at step {step} of {last}")
    elif warmup >= last:
        say(
            f"warning: {warmup} of {last} steps are warm-up: the learning rate "
            "never reaches its peak"
        )


def prepare(folder: str, config: BertConfig, vocab_file: str | None) -> None:
    """Creates the folder; writes config, vocabulary and command to it.

    Raises:
        OSError: the folder cannot be written.
    """
    storage.make_folder(folder)
    write_whole(os.path.join(folder, "bert_config.json"), config.to_json())
    if vocab_file:
        with storage.open_file(vocab_file, "rb") as file:
            write_whole(os.path.join(folder, VOCABULARY), file.read())
    _write_command(os.path.join(folder, "command.txt"))


def _write_command(path: str) -> None:
    """Adds the command line of this process, unless it is the last one."""
    before, command = "", shlex.join(sys.argv) + "\n"
    if storage.exists(path):
        with storage.open_text(path) as file:
            before = file.read()
    if not before.endswith(command):
        write_whole(path, before + command)


def write_results(
    folder: str,
    step: int,
    result: dict[str, float],
    references: dict[str, float] | None = None,
) -> str:
    """Writes and prints `eval_results.txt` with the original's keys.

    The file has all digits, the printed lines six.

    Args:
        folder: output_dir of the run.
        step: global step.
        result: metric -> value.
        references: see `eval_report`; printed beside the metrics.

    Returns:
        the path of the file.
    """
    path = os.path.join(folder, "eval_results.txt")
    result = {"global_step": step, **result}
    lines = [f"{key} = {result[key]}\n" for key in sorted(result)]
    write_whole(path, "".join(lines))
    for key in sorted(result):
        shown = value = result[key]
        if isinstance(value, float):
            shown = eval_report.describe(key, value, references or {})
        print(f"{key} = {shown}")
    return path
