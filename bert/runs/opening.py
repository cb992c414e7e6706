"""Opens a run: locks and reads its folder, and completes its settings.

    settings -> folder -> trained weights -> settings -> initial model -> run

Each value is made from those before it, without TensorFlow.
"""

import contextlib
import dataclasses
import os
import tempfile
from collections.abc import Iterator

from bert.common import flags, outputs, rules, storage
from bert.common.errors import UserError
from bert.common.formats import downloads
from bert.common.formats.json_files import Json
from bert.common.jobs import locks
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.config import BertConfig
from bert.modeling.formats import checkpoint_files
from bert.modeling.formats.checkpoint_files import VOCABULARY
from bert.modeling.formats.model_folder import ModelFiles, ModelFolder
from bert.tasks.finetuning_settings import FineTuningT
from bert.tasks.pretraining.inputs import Inputs
from bert.tasks.pretraining.settings import Settings
from bert.tasks.run import OutputFolder, Run, SettingsT, Trained, resumed
from bert.training import cluster


@contextlib.contextmanager
def open_run(settings: FineTuningT) -> Iterator[Run[FineTuningT]]:
    """Opens a run of fine-tuning, as the settings request.

    Args:
        settings: FineTuning. Settings of the script.

    Raises:
        UserError: see `open_folder`; a file of the folder is damaged or was
            edited, the initial model does not exist or does not fit the
            flags, or the folder contains a run with another network,
            vocabulary or casing.
        StorageError: the model cannot be downloaded now.
    """
    with open_folder(settings) as folder:
        settings, trained = complete_settings(settings)
        settings = with_kept_layers(settings, trained)

        model = initial_model(settings, trained)
        settings = settings.for_model(model)
        check_network(folder.shared, model.config, model.tokenizer)
        yield Run(
            settings, folder, trained, model, model.config, model.tokenizer
        )


@contextlib.contextmanager
def open_pretraining(
    settings: Settings,
) -> Iterator[tuple[Run[Settings], Inputs]]:
    """Opens a run of pre-training, and its records.

    Args:
        settings: Settings. Settings of the script.

    Raises:
        UserError: see `open_run` and `Inputs.open`.
    """
    with open_folder(settings) as folder:
        settings, trained = complete_settings(settings)
        start = start_of(settings, trained)

        # The vocabulary belongs to the records.
        given = ModelFiles(bert_config_file=settings.bert_config_file)
        model = ModelFolder.open(start, given)
        inputs = Inputs.open(settings, model)
        if inputs.tokenizer and model.path and not resumed(trained):
            model.check_vocabulary(inputs.tokenizer)
        check_network(folder.shared, inputs.config, inputs.tokenizer)

        last = inputs.phases[-1].records
        settings = dataclasses.replace(
            settings,
            max_seq_length=last.max_seq_length,
            max_predictions_per_seq=last.max_predictions_per_seq,
        )
        network = inputs.config, inputs.tokenizer
        yield Run(settings, folder, trained, model, *network), inputs


@contextlib.contextmanager
def open_folder(settings: SettingsT) -> Iterator[OutputFolder]:
    """Opens --output_dir, and locks it for a run that trains.

    With several workers, only the first one writes and prints. With
    --dry_run a temporary folder is used instead.

    Args:
        settings: Training. Settings of the script.

    Raises:
        UserError: another process trains in the folder, it is a file, or it
            cannot be written.
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
        yield OutputFolder(path, shared)


def complete_settings(settings: SettingsT) -> tuple[SettingsT, Trained | None]:
    """Completes settings with the flags that trained weights have recorded.

    Args:
        settings: Training. Settings of the script.

    Returns:
        the settings, and the weights of an earlier command, if any.

    Raises:
        UserError: a file is damaged or was edited, or recorded values
            contradict given flags.
        StorageError: the model cannot be downloaded now.
    """
    settings = with_initial_model(settings)
    trained = trained_of(settings)
    return completed(settings, trained), trained


def with_initial_model(settings: SettingsT) -> SettingsT:
    """Returns settings with the folder of the initial model.

    Args:
        settings: Training. Settings of the script.

    Raises:
        StorageError: the model cannot be downloaded now.
    """
    values = flags.as_dict(settings)
    named = values["init_checkpoint"] or values.get("bert_hub_module_handle")
    if not named:
        return settings
    return dataclasses.replace(settings, init_checkpoint=downloads.fetch(named))


def trained_of(settings: SettingsT) -> Trained | None:
    """Reads the records beside the weights of an earlier command.

    Labels and length of a new run come from its flags, not from its initial
    model.

    Args:
        settings: Training. Settings of the script, with the folder of the
            initial model.

    Returns:
        the weights in --output_dir, from which the run resumes; else the
        initial model of a run that does not train; else None.

    Raises:
        UserError: a file is damaged or was edited.
    """
    resumes = has_checkpoint(settings.output_dir)
    path = None if settings.do_train else settings.init_checkpoint
    path = settings.output_dir if resumes else path
    if not (path and storage.any_starts_with(path)):
        return None
    task_json = checkpoint_files.task_of(path)
    recorded = checkpoint_files.recorded_settings(path)
    return Trained(path, resumes, task_json, recorded)


def completed(settings: SettingsT, trained: Trained | None) -> SettingsT:
    """Returns settings with the recorded flags of trained weights.

    Args:
        settings: Training. Settings of the script.
        trained: Trained or None. Result of `trained_of`.

    Raises:
        UserError: recorded values contradict given flags.
    """
    if not trained:
        return settings
    values = trained.recorded | (trained.task_json or {})
    if settings.do_train and checkpoint_files.TUNED_STEP in values:
        # Fitted to the weights before this training.
        values = trained.recorded
    return _with_recorded(settings, values)


def with_kept_layers(
    settings: FineTuningT, trained: Trained | None
) -> FineTuningT:
    """Returns settings with the layers of a resumed run, not all layers.

    Args:
        settings, trained: see `completed`.
    """
    continued = resumed(trained)
    kept = continued.recorded.get("keep_layers") if continued else None
    if not kept or "keep_layers" in settings.given:
        return settings
    return dataclasses.replace(settings, keep_layers=tuple(kept))


def initial_model(
    settings: FineTuningT, trained: Trained | None
) -> ModelFolder:
    """Opens the initial model of fine-tuning.

    Args:
        settings: FineTuning. Result of `with_kept_layers`.
        trained: Trained or None. Result of `trained_of`.

    Raises:
        UserError: the model does not exist.
    """
    start = start_of(settings, trained)
    model = ModelFolder.open(start, settings)
    # The checkpoints of the run have the kept layers only.
    kept = settings.keep_layers
    if kept and start and not storage.is_inside(start, settings.output_dir):
        model = model.keep_layers(kept)
    return model


def start_of(settings: SettingsT, trained: Trained | None) -> str | None:
    """Path of the initial model; None for a network of random weights.

    When a run resumes, the model that it started from may not exist any more.

    Args:
        settings, trained: see `initial_model`.
    """
    start = settings.init_checkpoint
    if resumed(trained) and not (start and storage.any_starts_with(start)):
        return settings.output_dir
    return start


def check_network(
    folder: str, config: BertConfig, tokenizer: Tokenizer | None
) -> None:
    """Checks that the run in a folder has this network.

    Args:
        folder: str. --output_dir.
        config: BertConfig. Sizes of the network.
        tokenizer: Tokenizer or None. Tokenizer of the run, if known.

    Raises:
        UserError: the folder contains a run with another network,
            vocabulary or casing.
    """
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


def _with_recorded(settings: SettingsT, recorded: dict[str, Json]) -> SettingsT:
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
