r"""Exports a checkpoint as TF-Hub SavedModels: encoder or preprocessor.

    python export_hub.py --export_type=model --bert_config_file=config.json \
        --model_checkpoint_path=bert_model.ckpt --vocab_file=vocab.txt \
        --export_path=encoder
    python export_hub.py --export_type=preprocessing \
        --vocab_file=vocab.txt --export_path=preprocessor

An encoder is reloaded and compared before it is renamed to its path.
"""

import sys

from bert.common import command_line
from bert.common import main as common_main
from bert.common.progress import log
from bert.export.tf_hub_settings import Settings, check


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = command_line.parse(argv, Settings, __doc__)
    model = check(settings)

    # TensorFlow is imported late: invalid flags and files fail before.
    from bert.export import tf_hub_export
    from bert.training import distribution

    if settings.is_preprocessor:
        print(tf_hub_export.export_preprocessor(settings, model.tokenizer))
    else:
        one = distribution.make_strategy("one_device")
        log(distribution.describe(one, settings.precision))
        print(tf_hub_export.export_model(settings, model))


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
