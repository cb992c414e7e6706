"""Folder of a run: its lock, its checks and its files."""

import contextlib
import dataclasses
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator
from typing import Self

from bert.common import locks, storage
from bert.common.atomic import write_whole
from bert.common.errors import UserError
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.config import BertConfig
from bert.modeling.formats import checkpoint_files
from bert.modeling.formats.checkpoint_files import VOCABULARY
from bert.modeling.formats.model_folder import ModelFolder
from bert.tasks import eval_report
from bert.training import cluster
from bert.training.settings import Training


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """The --output_dir of a run, as this process uses it.

    Attributes:
        path: str. Folder where this process writes: --output_dir, or a
            temporary folder for all workers but the first.
        shared: str. --output_dir, which contains the checkpoints.
        config: BertConfig. Sizes of the network.
        tokenizer: Tokenizer or None. Tokenizer of the run, if known.
    """

    path: str
    shared: str
    config: BertConfig
    tokenizer: Tokenizer | None

    @classmethod
    @contextlib.contextmanager
    def open(
        cls, training, config: BertConfig, tokenizer: Tokenizer | None
    ) -> Iterator[Self]:
        """Locks --output_dir for a run that trains, and checks it.

        With several workers, only the first one writes and prints. With --plan
        a temporary folder is used instead.

        Args:
            training: training.settings.Training. Training settings of the run.
            config: BertConfig. Sizes of the network.
            tokenizer: Tokenizer or None. Tokenizer of the run, if known.

        Raises:
            UserError: another process trains in the folder, it is a file, or
                it contains a run with another network, vocabulary or casing.
        """
        path = shared = training.output_dir
        workers = cluster.from_flags(training.distribution, training.use_tpu)
        with contextlib.ExitStack() as held:
            if training.plan:  # do not write to --output_dir
                path = shared = held.enter_context(
                    tempfile.TemporaryDirectory(prefix="plan-")
                )
            elif workers and not workers.is_chief:
                path = held.enter_context(
                    tempfile.TemporaryDirectory(prefix="worker-")
                )

                # Otherwise each line would be printed once per worker.
                nowhere = held.enter_context(open(os.devnull, "w"))
                held.enter_context(contextlib.redirect_stdout(nowhere))
            elif training.do_train:
                held.enter_context(claim(shared))

            # Checked under the lock, so that another run cannot change it.
            folder = cls(path, shared, config, tokenizer)
            folder.check()
            yield folder

    @property
    def is_chief(self) -> bool:
        """Whether this process writes the files of the run."""
        return self.path == self.shared

    def below(self, name: str) -> Self:
        """Folder of another run inside this one."""
        return dataclasses.replace(
            self, path=self.file(name), shared=os.path.join(self.shared, name)
        )

    def check(self) -> None:
        """Rejects a folder with another network, vocabulary or casing.

        Raises:
            UserError: the folder contains such a run.
        """
        folder, config, tokenizer = self.shared, self.config, self.tokenizer
        _check_is_folder(folder)

        # A resumed run must have the config of the folder.
        path = os.path.join(folder, "bert_config.json")
        if storage.exists(path) and BertConfig.from_json_file(path) != config:
            raise UserError(
                "holds a run with another config",
                path=folder,
                fix="pass another --output_dir, or the config of this run",
            )
        path = os.path.join(folder, VOCABULARY)
        if tokenizer and storage.exists(path):
            fix = "pass another --output_dir, or the run's vocabulary"
            tokenizer.same_as(Tokenizer(path), fix)

        # The casing is recorded beside the checkpoint, not in vocab.txt.
        if tokenizer and has_checkpoint(folder):
            ModelFolder.open(folder).check_casing(tokenizer)

    def file(self, name: str) -> str:
        """Path of a file that this process writes."""
        return os.path.join(self.path, name)

    def write_inputs(self) -> None:
        """Creates the folder; writes config, vocabulary and command to it.

        Raises:
            OSError: the folder cannot be written.
        """
        storage.make_folder(self.path)
        write_whole(self.file("bert_config.json"), self.config.to_json())
        if self.tokenizer:
            write_whole(self.file(VOCABULARY), self.tokenizer.content)

        # When another command resumes the run, it is appended.
        path, before = self.file("command.txt"), ""
        command = shlex.join(sys.argv) + "\n"
        if storage.exists(path):
            with storage.open_text(path) as file:
                before = file.read()
        if not before.endswith(command):
            write_whole(path, before + command)

    def write_results(
        self, step: int, metrics: dict[str, float], report: dict | None = None
    ) -> list[str]:
        """Writes and prints `eval_results.txt` with the original's keys.

        The file has all digits, the printed lines six.

        Args:
            step: int. Global step.
            metrics: dict. Metric -> value.
            report: dict or None. Values for `eval_report`, which is also
                written. Its baselines are printed beside the metrics.
                Default: None.

        Returns:
            Paths of the files.
        """
        paths = [self.file("eval_results.txt")]
        result = {"global_step": step, **metrics}
        lines = [f"{key} = {result[key]}\n" for key in sorted(result)]
        write_whole(paths[0], "".join(lines))

        # Log.
        references = (report or {}).get("references", {})
        for key in sorted(result):
            shown = value = result[key]
            if isinstance(value, float):
                shown = eval_report.describe(key, value, references)
            print(f"{key} = {shown}")
        if report is not None:
            paths.append(eval_report.write(self.path, step, metrics, report))
        return paths


def print_written(wrote: list[str]) -> None:
    """Prints the paths of written files, at the end of a script."""
    if wrote:
        print("wrote " + "\n      ".join(wrote))


@contextlib.contextmanager
def claim(folder: str) -> Iterator[None]:
    """Locks a folder for one process that trains.

    The folder and its parents are created, and removed again if they stay
    empty. The lock ends with the process. Remote storage has no locks, so it
    is not locked.

    Args:
        folder: str. Output folder of the run.

    Raises:
        UserError: another process trains in the folder; the message names it.
        OSError: the folder cannot be written.
    """
    if storage.is_remote(folder):
        yield
        return
    _check_is_folder(folder)
    created, path = [], os.path.abspath(folder)
    while not storage.exists(path):
        created.append(path)
        path = os.path.dirname(path)
    os.makedirs(folder, exist_ok=True)
    try:
        with locks.hold(os.path.join(folder, ".lock"), folder):
            yield
    finally:
        # Remove the folder of a run that has written no file.
        for path in created:
            if not os.listdir(path):
                os.rmdir(path)


def _check_is_folder(folder: str) -> None:
    if storage.exists(folder) and not storage.is_folder(folder):
        raise UserError("is a file", path=folder, expected="a folder")


def has_checkpoint(folder: str) -> bool:
    """Returns whether a folder has checkpoints of a run; "" has none."""
    return bool(folder) and storage.exists(os.path.join(folder, "checkpoint"))


def recorded_labels(training: Training) -> tuple[str, dict] | None:
    """Finds the weights of a run that does not train, and their labels.

    Args:
        training: Training. Training settings of the run.

    Returns:
        Path of the weights, and the `task.json` beside them. None if the file
        is missing, or if the run trains.

    Raises:
        UserError: the file is damaged or was edited.
    """
    path = None if training.do_train else _weights_of(training)
    task = checkpoint_files.task_of(path) if path else None
    return (path, task) if task else None


def recorded_length(training: Training) -> int | None:
    """Returns the recorded --max_seq_length when resuming or predicting.

    Args:
        training: Training. Training settings of the run.

    Returns:
        Length in `task.json` or, without labels, in the checkpoint. None for
        a new run, or if the length is unknown.

    Raises:
        UserError: a file is damaged or was edited.
    """
    path = _weights_of(training)
    if not (path and storage.any_starts_with(path)):
        return None
    recorded = checkpoint_files.task_of(path) or {}
    recorded = checkpoint_files.recorded_settings(path) | recorded
    return recorded.get("max_seq_length")


def _weights_of(training: Training) -> str | None:
    """Weights that a run resumes from or predicts with.

    None for a new run: labels and length come from its flags, not from the
    initial checkpoint.
    """
    if has_checkpoint(training.output_dir):
        return training.output_dir
    return None if training.do_train else training.init_checkpoint


def check_labels(folder: str, labels: dict) -> None:
    """Checks that the checkpoints in a folder have the labels of a run.

    Args:
        folder: str. Output folder of the run, or of several seeds.
        labels: dict. Kind and names of the labels, as in `task.json`.

    Raises:
        UserError: the checkpoints have other labels.
    """
    # Earlier versions recorded fewer values. Without checkpoints, any labels
    # are valid.
    recorded = checkpoint_files.task_of(folder) or {}
    has_others = any(recorded.get(x, labels[x]) != labels[x] for x in labels)
    names = map(os.path.basename, storage.files_below(folder))
    if has_others and "checkpoint" in names:
        raise UserError(
            f"holds a run with the labels {shown(recorded)}",
            path=folder,
            expected=shown(labels),
            fix="pass another --output_dir",
        )


def shown(labels: dict) -> str:
    """Formats the names of labels for a message."""
    names = labels["labels"]
    more = f", ... ({len(names)})" if len(names) > 5 else ""
    return f"{', '.join(names[:5])}{more}" if names else "(numbers)"
