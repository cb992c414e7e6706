r"""Exports a checkpoint as SavedModels for TF-Hub: encoder, preprocessor.

    python export_hub.py --export_type=model --bert_config_file=config.json \
        --model_checkpoint_path=bert_model.ckpt --vocab_file=vocab.txt \
        --export_path=encoder
    python export_hub.py --export_type=preprocessing \
        --vocab_file=vocab.txt --export_path=preprocessor

The export is reloaded and compared before it is renamed to its path.
"""

import sys

from common import flags
from common import main as common_main
from common.progress import say
from data.text import vocabulary, vocabulary_checks
from serving import export_hub
from serving.export_hub import Settings
from tasks import run_folder


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = export_hub.check(flags.parse(argv, Settings, __doc__))
    if settings.model_checkpoint_path:
        run_folder.check_beside(
            settings.model_checkpoint_path, settings.files.vocab_file
        )
    vocab = vocabulary.read_vocabulary(settings.files.vocab_file)
    if settings.is_preprocessor:
        vocabulary_checks.check_exportable(settings.files.vocab_file, vocab)
        print(export_hub.export_preprocessor(settings, list(vocab)))
    else:
        config = export_hub.read_config(settings, list(vocab))
        from training import distribution

        one = distribution.make_strategy("one_device")
        say(distribution.describe(one, settings.precision))
        print(export_hub.export_model(settings, config, list(vocab)))


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
