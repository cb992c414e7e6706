"""TF-Hub SavedModels as initial weights of run_classifier.py."""

import dataclasses
import os

from bert.common import flags, storage
from bert.common.errors import UserError
from bert.common.formats import published
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.formats.model_folder import ModelFiles, ModelFolder
from bert.tasks.classification.settings import Settings


def open_module(settings: Settings) -> ModelFolder | None:
    """Opens --bert_hub_module_handle; None without it.

    Flags that are not given follow the module: its config, vocabulary, casing.

    Raises:
        UserError: the module is missing.
    """
    handle, tuning = settings.bert_hub_module_handle, settings.tuning
    if not handle:
        return None
    if tuning.training.model.init_checkpoint:
        raise UserError(
            "--init_checkpoint and --bert_hub_module_handle",
            expected="one of them",
        )
    handle = published.fetch(handle)
    if not storage.is_file(os.path.join(handle, "saved_model.pb")):
        raise UserError(
            "no SavedModel",
            path=handle,
            expected="a folder on this machine with saved_model.pb",
            fix="pass it, or the https:// handle of the module",
        )
    casing = dataclasses.asdict(tuning.text.casing)
    files = ModelFiles(
        tuning.training.model.bert_config_file,
        tuning.text.vocab_file,
        **{name: x for name, x in casing.items() if name in settings.given},
    )
    return ModelFolder.open(handle, files, "hub")


def with_casing(settings: Settings, tokenizer: Tokenizer) -> Settings:
    """The settings with the casing of the module, for its checkpoints."""
    return flags.replace(
        settings,
        do_lower_case=tokenizer.do_lower_case,
        strip_accents=tokenizer.strip_accents,
    )
