"""Checks of the settings and files of a fine-shared run of any task."""

import os
from collections.abc import Iterable
from typing import Any

from bert.common import flags, outputs, storage
from bert.common.errors import UserError
from bert.data.text import vocabulary_checks
from bert.modeling.formats import model_folder
from bert.modeling.formats.model_folder import ModelFiles, ModelFolder
from bert.tasks import finetuning_settings, main, run_folder
from bert.training.settings import Training


def warn(model: ModelFolder, texts: Iterable[str]) -> None:
    """Warns if a vocabulary seems not to match the network or the texts.

    Args:
        model: the result of `check`.
        texts: texts of the examples; the first thousand are tokenized.
    """
    vocabulary_checks.warn(
        model.tokenizer, model.config.vocab_size, model.config_file, texts
    )


def check(
    shared: finetuning_settings.FineTuning, in_graph: bool = False
) -> ModelFolder:
    """Checks the settings against each other and against the files.

    Args:
        shared: the settings of fine-tuning.
        in_graph: whether the task tokenizes in a graph, as an export does.

    Returns:
        the config, the tokenizer and the initial weights of every task.

    Raises:
        UserError: if they contradict each other.
    """
    training = shared.training
    begun = run_folder.has_checkpoint(training.output_dir)
    path = training.model.init_checkpoint
    if begun and not (path and storage.any_starts_with(path)):
        path = training.output_dir
    casing = shared.text.casing
    model = ModelFolder.open(
        path,
        ModelFiles(
            training.model.bert_config_file,
            shared.text.vocab_file,
            casing.do_lower_case,
            casing.strip_accents,
        ),
    )
    config, where = model.config, model.config_file
    tokenizer = model.tokenizer
    config.check_vocabulary(tokenizer.tokens, tokenizer.path, where)
    if shared.export_dir or in_graph:
        vocabulary_checks.check_exportable(tokenizer)
    config.check_length(shared.max_seq_length, "max_seq_length", where)
    if not 0 <= shared.warmup_proportion <= 1:
        raise UserError(
            f"--warmup_proportion={shared.warmup_proportion}",
            expected="a number from 0 to 1",
        )
    if not 0 < shared.layer_decay <= 1:
        raise UserError(
            f"--layer_decay={shared.layer_decay}",
            expected="a number above 0, at most 1",
        )
    if shared.freeze_layers > config.num_hidden_layers:
        raise UserError(
            f"--freeze_layers={shared.freeze_layers}",
            expected=f"at most num_hidden_layers, {config.num_hidden_layers} "
            f"({where})",
        )
    training.check_micro_batches(training.train_batch_size)
    if training.early_stopping_patience and not training.eval_steps:
        raise UserError(
            f"--early_stopping_patience={training.early_stopping_patience}",
            expected="--eval_steps, the number of steps between evaluations",
        )
    if model.path != training.output_dir:
        model.check_casing(tokenizer)
    return model


def requested_files(script_settings) -> dict[str, str | None]:
    """Flag -> path of the files that the settings require.

    Args:
        script_settings: with `finetuning`, `train_file`, `eval_file` and
            `predict_file`.
    """
    shared = script_settings.finetuning
    requested = {
        "train_file": shared.training.do_train,
        "eval_file": shared.evaluates,
        "predict_file": shared.do_predict,
    }
    return {
        name: getattr(script_settings, name)
        for name, is_needed in requested.items()
        if is_needed
    }


def check_files(
    shared: finetuning_settings.FineTuning, paths: dict[str, str | None]
) -> None:
    """Checks that the files that the settings require are named.

    Args:
        shared: the settings of fine-tuning.
        paths: flag -> path of each of them.

    Raises:
        UserError: a flag is missing, or as for `check_requested`.
    """
    check_requested(shared, paths)
    for name, path in paths.items():
        if not path:
            raise UserError(f"no --{name}", fix="name the file")


def check_requested(shared: finetuning_settings.FineTuning, requested) -> None:
    """Checks that there is something to do, and the flags of the run.

    Args:
        shared: the settings of fine-tuning.
        requested: true if files are to be read.

    Raises:
        UserError: if there is nothing to do, --export_dir exists, or flags
            contradict each other.
    """
    if not requested and not shared.export_dir:
        raise UserError(
            "nothing to do",
            fix="pass --do_train, --do_eval, --do_predict or --export_dir",
        )
    shared.training.check()
    if shared.export_dir:
        outputs.check_new_folder(shared.export_dir, "pass another --export_dir")


def recorded_labels(training: Training) -> tuple[str, dict] | None:
    """Finds the weights of a run that does not train, and their labels.

    Returns:
        the path of the weights and the `task.json` beside them; None if there
        is none, or the run trains.

    Raises:
        UserError: the file is damaged or was edited.
    """
    path, task = training.output_dir, None
    if training.do_train:
        return None
    if run_folder.has_checkpoint(path):
        task = model_folder.task_of(path)
    elif training.model.init_checkpoint:
        path = training.model.init_checkpoint
        task = model_folder.task_of(path)
    return (path, task) if task else None


def complete(settings: Any) -> Any:
    """Completes the settings of a script by what is beside its model.

    Without --max_seq_length a fine-tuned model keeps its length.

    Args:
        settings: from `tasks.main.parse`, with `finetuning`.

    Returns:
        the settings with the folder of a published model, and with the length.

    Raises:
        UserError: there is no such model, or a file is damaged or was edited.
        StorageError: it cannot be fetched now.
    """
    settings = main.with_local_model(settings)
    length = recorded_length(settings.finetuning.training)
    if length and "max_seq_length" not in settings.given:
        settings = flags.replace(settings, max_seq_length=length)
        settings.check()
    return settings


def recorded_length(training: Training) -> int | None:
    """Finds the --max_seq_length of the run that goes on or answers.

    Returns:
        that of its `task.json` or, without labels, of its checkpoint; None if
        there is no such run, or its length is unknown.

    Raises:
        UserError: a file is damaged or was edited.
    """
    path = training.output_dir
    if not run_folder.has_checkpoint(path):
        path = None if training.do_train else training.model.init_checkpoint
    if not (path and storage.any_starts_with(path)):
        return None
    recorded = model_folder.task_of(path) or {}
    recorded = model_folder.recorded_settings(path) | recorded
    return recorded.get("max_seq_length")


def check_labels(folder: str, labels: dict) -> None:
    """Checks that the checkpoints of a folder have the labels of a run.

    Args:
        folder: output_dir of the run, or the folder of several seeds.
        labels: kind and names of its labels, as in `task.json`.

    Raises:
        UserError: they have other labels.
    """
    recorded = model_folder.task_of(folder)
    names = map(os.path.basename, storage.files_below(folder))
    if recorded and "checkpoint" in names and recorded | labels != recorded:
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
