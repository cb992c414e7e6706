"""Initial model of a fine-tuning run of any task."""

from collections.abc import Iterable

from bert.common import storage
from bert.common.errors import UserError
from bert.data.text import vocabulary_checks
from bert.modeling.formats.model_folder import ModelFolder
from bert.tasks import run_folder
from bert.tasks.finetuning_settings import FineTuning


def find(settings: FineTuning, in_graph: bool = False) -> ModelFolder:
    """Finds the model of a run, and checks that the settings fit it.

    Args:
        settings: FineTuning. Settings of fine-tuning.
        in_graph: bool. Whether the task tokenizes in a graph, as exports do.
            Default: False.

    Returns:
        ModelFolder with config, tokenizer and initial weights.

    Raises:
        UserError: the model is missing, its files contradict each other, or
            the settings do not fit them.
    """
    path = settings.init_checkpoint
    begun = run_folder.has_checkpoint(settings.output_dir)
    # When resuming, the initial checkpoint may not exist any more.
    if begun and not (path and storage.any_starts_with(path)):
        path = settings.output_dir
    model = ModelFolder.open(path, settings)

    # Each file is valid on its own; here they are checked together.
    config, where = model.config, model.config_file
    tokenizer = model.tokenizer
    config.check_vocabulary(tokenizer.tokens, tokenizer.path, where)
    if settings.export_dir or in_graph:
        vocabulary_checks.check_exportable(tokenizer)
    if model.path != settings.output_dir:
        model.check_casing(tokenizer)

    # Flags must also fit the network.
    config.check_length(settings.max_seq_length, "max_seq_length", where)
    if settings.freeze_layers > config.num_hidden_layers:
        raise UserError(
            f"--freeze_layers={settings.freeze_layers}",
            expected=f"at most num_hidden_layers, {config.num_hidden_layers} "
            f"({where})",
        )
    return model


def warn(model: ModelFolder, texts: Iterable[str]) -> None:
    """Warns if a vocabulary seems not to match the network or the texts.

    Args:
        model: ModelFolder. The model.
        texts: iterable of str. Texts of the examples. The first thousand are
            tokenized.
    """
    vocabulary_checks.warn(
        model.tokenizer, model.config.vocab_size, model.config_file, texts
    )
