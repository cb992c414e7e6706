"""TF-Hub SavedModels as initial weights of run_classifier.py."""

import os

from common import flags, storage
from common.errors import UserError
from data.text import vocabulary
from modeling.config import BertConfig
from modeling.formats import model_folder
from tasks import run_folder
from tasks.classification.settings import Settings


def with_vocabulary(settings: Settings) -> Settings:
    """Settings with the vocabulary of the module, unless a flag names one.

    Raises:
        UserError: the module is missing, its vocabulary differs from
            --vocab_file, or the vocabulary or config is not given at all.
    """
    handle = settings.bert_hub_module_handle
    if handle:
        if settings.tuning.training.model.init_checkpoint:
            raise UserError(
                "--init_checkpoint and --bert_hub_module_handle",
                expected="one of them",
            )
        if not storage.is_file(os.path.join(handle, "saved_model.pb")):
            raise UserError(
                "no SavedModel",
                path=handle,
                expected="a folder on this machine with saved_model.pb",
                fix="download the module and unpack it",
            )
        if not settings.tuning.text.vocab_file:
            vocab_file = model_folder.asset(handle)
            settings = flags.replace(settings, vocab_file=vocab_file)
        run_folder.check_beside(handle, settings.tuning.text.vocab_file)
    if not settings.tuning.text.vocab_file:
        raise UserError("no --vocab_file", fix="see --help")
    if not (handle or settings.tuning.training.model.bert_config_file):
        raise UserError("no --bert_config_file", fix="see --help")
    return settings


def read(settings: Settings) -> tuple[Settings, BertConfig | None, dict | None]:
    """Reads the variables of the module, if there is one, without its graph.

    Returns:
        the settings, with the casing of the module, or one guessed from the
        vocabulary, unless flags set it; the config and the weights, original
        name -> array, or None for both.
    """
    if not settings.bert_hub_module_handle:
        return settings, None, None
    from modeling.formats import conversion

    bert = conversion.read_hub(
        settings.bert_hub_module_handle,
        settings.tuning.training.model.bert_config_file,
    )
    casing = {"strip_accents": bert.strip_accents}
    if bert.do_lower_case is not None:
        casing["do_lower_case"] = bert.do_lower_case
    elif "do_lower_case" not in settings.given:  # as of TensorFlow 1
        vocab = vocabulary.read_vocabulary(settings.tuning.text.vocab_file)
        casing["do_lower_case"] = model_folder.guess_casing([*vocab])
    casing = {k: v for k, v in casing.items() if k not in settings.given}
    return flags.replace(settings, **casing), bert.config, bert.values
