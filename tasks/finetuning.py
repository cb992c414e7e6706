"""Checks of the settings and files of a fine-tuning run of any task."""

import dataclasses
from collections.abc import Iterable

from common.errors import UserError
from data.text import vocabulary, vocabulary_checks
from modeling.config import BertConfig
from modeling.formats import model_folder
from serving import export_folder
from tasks import finetuning_settings, run_folder


@dataclasses.dataclass(frozen=True)
class Setup:
    """The checked inputs of every task.

    Attributes:
        config: sizes of the network.
        vocab: token -> id.
    """

    config: BertConfig
    vocab: dict[str, int]


def check(
    tuning: finetuning_settings.FineTuning,
    config: BertConfig | None = None,
    in_graph: bool = False,
) -> Setup:
    """Checks the settings against each other and against the files.

    Args:
        tuning: the settings.
        config: used instead of --bert_config_file.
        in_graph: whether the task tokenizes in a graph, as an export does.

    Returns:
        the config and the vocabulary.

    Raises:
        UserError: if they contradict each other.
    """
    training, model = tuning.training, tuning.training.model
    where = "the module" if config else model.bert_config_file
    config = config or BertConfig.from_json_file(model.bert_config_file)
    vocab = vocabulary.read_vocabulary(tuning.text.vocab_file)
    config.check_vocabulary(vocab, tuning.text.vocab_file, where)
    if tuning.export_dir or in_graph:
        vocabulary_checks.check_exportable(tuning.text.vocab_file, vocab)
    config.check_length(tuning.max_seq_length, "max_seq_length", where)
    if not 0 <= tuning.warmup_proportion <= 1:
        raise UserError(
            f"--warmup_proportion={tuning.warmup_proportion}",
            expected="a number from 0 to 1",
        )
    if not 0 < tuning.layer_decay <= 1:
        raise UserError(
            f"--layer_decay={tuning.layer_decay}",
            expected="a number above 0, at most 1",
        )
    if tuning.freeze_layers > config.num_hidden_layers:
        raise UserError(
            f"--freeze_layers={tuning.freeze_layers}",
            expected=f"at most num_hidden_layers, {config.num_hidden_layers} "
            f"({where})",
        )
    training.check_micro_batches(training.train_batch_size)
    if training.early_stopping_patience and not training.eval_steps:
        raise UserError(
            f"--early_stopping_patience={training.early_stopping_patience}",
            expected="--eval_steps, the number of steps between evaluations",
        )
    casing = tuning.text.do_lower_case, tuning.text.strip_accents
    if model.init_checkpoint:
        model_folder.check_casing(*casing, model.init_checkpoint)
        run_folder.check_beside(model.init_checkpoint, tuning.text.vocab_file)
    if run_folder.has_checkpoint(training.output_dir) and not training.do_train:
        model_folder.check_recorded_casing(*casing, training.output_dir)
    return Setup(config, vocab)


def warn_vocabulary(
    tuning: finetuning_settings.FineTuning, setup: Setup, texts: Iterable[str]
) -> None:
    """Warns if the vocabulary seems not to match the network or the texts.

    Args:
        tuning: the settings.
        setup: from `check`.
        texts: texts of the examples; the first thousand are tokenized.
    """
    model_folder.warn_vocabulary(
        *tuning.text.tokenizer_arguments,
        setup.config,
        tuning.training.model.bert_config_file,
        texts,
    )


def requested_files(script_settings) -> dict[str, str | None]:
    """Flag -> path of the files that the settings require.

    Args:
        script_settings: with `tuning`, `train_file`, `eval_file` and
            `predict_file`.
    """
    tuning = script_settings.tuning
    requested = {
        "train_file": tuning.training.do_train,
        "eval_file": tuning.evaluates,
        "predict_file": tuning.do_predict,
    }
    return {
        name: getattr(script_settings, name)
        for name, is_needed in requested.items()
        if is_needed
    }


def check_files(script_settings) -> None:
    """Checks that the files that the settings require are named.

    Args:
        script_settings: see `requested_files`.

    Raises:
        UserError: a flag is missing, or as for `check_requested`.
    """
    paths = requested_files(script_settings)
    check_requested(script_settings.tuning, paths)
    for name, path in paths.items():
        if not path:
            raise UserError(f"no --{name}", fix="name the file")


def check_requested(tuning: finetuning_settings.FineTuning, requested) -> None:
    """Checks that there is something to do, and the flags of the run.

    Args:
        tuning: the settings.
        requested: true if files are to be read.

    Raises:
        UserError: if there is nothing to do, --export_dir exists, or flags
            contradict each other.
    """
    if not requested and not tuning.export_dir:
        raise UserError(
            "nothing to do",
            fix="pass --do_train, --do_eval, --do_predict or --export_dir",
        )
    tuning.training.check()
    export_folder.check(tuning.export_dir)
