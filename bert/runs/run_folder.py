"""Folder of a run: its lock, its checks and its files."""

import contextlib
import dataclasses
import hashlib
import os
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator
from typing import Any, Self

from bert.common import flags, locks, outputs, rules, storage
from bert.common.atomic import write_whole
from bert.common.errors import UserError
from bert.common.formats import downloads
from bert.data.labels import Labels
from bert.data.text import vocabulary_checks
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.config import BertConfig
from bert.modeling.formats import checkpoint_files
from bert.modeling.formats.checkpoint_files import VOCABULARY
from bert.modeling.formats.model_folder import ModelFiles, ModelFolder
from bert.runs import eval_report
from bert.tasks.finetuning_settings import FineTuning
from bert.tasks.task import Task
from bert.training import cluster


@dataclasses.dataclass(frozen=True)
class RunFolder:
    """The --output_dir of a run, as this process uses it.

    `open` reads the files of a run once, without TensorFlow.

    Attributes:
        path: str. Folder where this process writes: --output_dir, or a
            temporary folder for all workers but the first.
        shared: str. --output_dir, which contains the checkpoints.
        config: BertConfig or None. Sizes of the network, once known.
        tokenizer: Tokenizer or None. Tokenizer of the run, if known.
        settings: settings of the script, with the folder of a published model
            and with the recorded flags of a trained one, see `with_recorded`.
        model: ModelFolder. Initial weights, with config and vocabulary.
        resumes: bool. Whether the folder has checkpoints to resume from.
        trained: str or None. Weights that the run resumes from, or predicts
            with if it does not train. None: a new run.
        task_json: dict or None. The `task.json` beside them.
        recorded: dict. The flags that they were trained with; {} if unknown.
    """

    path: str
    shared: str
    config: BertConfig | None = None
    tokenizer: Tokenizer | None = None
    settings: Any = None
    model: ModelFolder = ModelFolder("", "google", ModelFiles())
    resumes: bool = False
    trained: str | None = None
    task_json: dict | None = None
    recorded: dict = dataclasses.field(default_factory=dict)

    @classmethod
    @contextlib.contextmanager
    def open(cls, settings: Any) -> Iterator[Self]:
        """Locks --output_dir for a run that trains, and reads and checks it.

        With several workers, only the first one writes and prints. With
        --dry_run a temporary folder is used instead.

        Args:
            settings: settings of the script, a subclass of `Training`.

        Raises:
            UserError: another process trains in the folder, it is a file or
                cannot be written, a file is damaged or was edited, the initial
                model does not exist or does not fit the flags, or the folder
                contains a run with another network, vocabulary or casing.
            StorageError: the model cannot be downloaded now.
        """
        path = shared = settings.output_dir
        workers = cluster.from_flags(settings.distribution, settings.use_tpu)
        with contextlib.ExitStack() as held:
            if settings.dry_run:  # do not write to --output_dir
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
            elif settings.do_train:
                held.enter_context(claim(shared))

            # Read under the lock, so that another run cannot change it.
            _check_is_folder(shared)
            outputs.check_writable(path)
            yield cls(path, shared).read(settings).find_model()

    def read(self, settings: Any) -> Self:
        """Returns the folder with the settings and records of a run.

        Args:
            settings: settings of the script.

        Raises:
            UserError: see `open`.
        """
        values = flags.as_dict(settings)
        start = values["init_checkpoint"]
        start = downloads.fetch(start or values.get("bert_hub_module_handle"))
        settings = dataclasses.replace(settings, init_checkpoint=start)

        # Labels and length of a new run come from its flags, not from the
        # initial checkpoint.
        resumes = has_checkpoint(settings.output_dir)
        task_json, recorded = None, {}
        trained = None if settings.do_train else start
        trained = settings.output_dir if resumes else trained

        if trained and storage.any_starts_with(trained):
            task_json = checkpoint_files.task_of(trained)
            recorded = checkpoint_files.recorded_settings(trained)
            values = recorded | (task_json or {})

            if settings.do_train and checkpoint_files.TUNED_STEP in values:
                # Fitted to the weights before this training.
                values = recorded
            settings = with_recorded(settings, values)

            # A resumed run has the layers of its weights, not all layers.
            kept = recorded.get("keep_layers")
            if resumes and kept and "keep_layers" not in settings.given:
                settings = dataclasses.replace(
                    settings, keep_layers=tuple(kept)
                )

        return dataclasses.replace(
            self,
            settings=settings,
            resumes=resumes,
            trained=trained,
            task_json=task_json,
            recorded=recorded,
        )

    def find_model(self) -> Self:
        """Returns the folder with the initial model of the run.

        Raises:
            UserError: see `open`.
        """
        settings, start = self.settings, self.settings.init_checkpoint
        # When resuming, the initial checkpoint may not exist any more.
        if self.resumes and not (start and storage.any_starts_with(start)):
            start = settings.output_dir
        if not isinstance(settings, FineTuning):
            # Pre-training uses the vocabulary of its records.
            given = ModelFiles(bert_config_file=settings.bert_config_file)
            model = ModelFolder.open(start, given)
            return dataclasses.replace(self, model=model)
        model = ModelFolder.open(start, settings)
        # The checkpoints of the run have the kept layers only.
        keeps = settings.keep_layers and start
        if keeps and not storage.is_inside(start, settings.output_dir):
            model = model.keep_layers(settings.keep_layers)
        found = dataclasses.replace(
            self, settings=settings.for_model(model), model=model
        )
        return found.with_network(model.config, model.tokenizer)

    @property
    def is_chief(self) -> bool:
        """Whether this process writes the files of the run."""
        return self.path == self.shared

    @property
    def has_checkpoint(self) -> bool:
        """Whether this process's folder has checkpoints."""
        return has_checkpoint(self.path)

    def with_network(
        self, config: BertConfig, tokenizer: Tokenizer | None
    ) -> Self:
        """Returns the folder of a run with this network.

        Args:
            config: BertConfig. Sizes of the network.
            tokenizer: Tokenizer or None. Tokenizer of the run, if known.

        Raises:
            UserError: the folder contains a run with another network,
                vocabulary or casing.
        """
        # A resumed run must have the config of the folder.
        folder = self.shared
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
        return dataclasses.replace(self, config=config, tokenizer=tokenizer)

    def with_recipe(self, task: Task, num_rows: int) -> Self:
        """Returns the folder with settings that are chosen for the data.

        Args:
            task: Task. Task of the run.
            num_rows: int. Number of training rows; 0 without training.
        """
        assert self.config
        settings = task.with_recipe(
            self.settings, self.recorded, num_rows, self.config
        )
        return dataclasses.replace(self, settings=settings)

    def identify(self, sha256: str, holds_out: bool = False) -> str:
        """Identifies the training data, and checks that a run had the same.

        Args:
            sha256: str. SHA-256 hash of the file, in hex.
            holds_out: bool. Whether other rows of the file are held out for
                evaluation. The weights in the folder may have been trained on
                these rows. Default: False.

        Returns:
            str. Part of a SHA-256 hash of the data.

        Raises:
            UserError: the folder contains a run with other training data.
        """
        rows = self.settings.rows
        digest = hashlib.sha256((sha256 + rows).encode()).hexdigest()[:16]

        # Compare only the digest, which is the end of a description.
        recorded = self.recorded if self.resumes else {}
        if not str(recorded.get("records", digest)).endswith(digest):
            start = f", with --init_checkpoint={self.shared} to start from its "
            raise UserError(
                "holds a run with other training data"
                + " or another --teacher" * bool(self.settings.teacher),
                path=self.shared,
                fix="pass another --output_dir"
                + ("" if holds_out else f"{start}weights"),
            )
        return digest

    def check_labels(self, labels: Labels) -> None:
        """Checks that the checkpoints in the folder have the labels of a run.

        Args:
            labels: Labels. The labels of the run.

        Raises:
            UserError: the checkpoints have other labels.
        """
        # Earlier versions did not record the kind, other tasks no labels.
        if self.resumes and self.task_json:
            usual = {"kind": labels.kind, "labels": []}
            labels.check_same(
                Labels.of_task(usual | self.task_json),
                path=self.shared,
                fix="pass another --output_dir",
            )

    def warn(self, texts: Iterable[str]) -> None:
        """Warns if the vocabulary seems not to match the network or the texts.

        Without a tokenizer, nothing is checked.

        Args:
            texts: iterable of str. Texts of the examples. The first thousand
                are tokenized.
        """
        if self.config and self.tokenizer:
            vocabulary_checks.warn(
                self.tokenizer,
                self.config.vocab_size,
                self.model.config_file,
                texts,
                self.model.casing,
            )

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
        baselines = (report or {}).get("references", {})
        for key in sorted(result):
            shown = value = result[key]
            if isinstance(value, float):
                shown = eval_report.describe(key, value, baselines)
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


def with_recorded(settings: Any, recorded: dict) -> Any:
    """Returns settings with the recorded values that predictions depend on.

    Args:
        settings: settings of the script. A flag that is given keeps its value.
        recorded: dict. Name of a flag -> the value in training. Other names
            are ignored.

    Raises:
        UserError: the values contradict given flags.
    """
    values = {
        flag.name: recorded[flag.name]
        for flag in flags.flags_of(type(settings))
        if flag.recorded
        and flag.name in recorded
        and flag.name not in settings.given
    }
    if values:
        settings = dataclasses.replace(settings, **values)
        rules.check(settings)
    return settings
