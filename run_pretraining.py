r"""Pre-trains BERT on TFRecords: masked LM and next sentence prediction.

    python run_pretraining.py --do_train --do_eval \
        --input_file='records/wiki.tfrecord*' --output_dir=run \
        --bert_config_file=configs/bert_base.json

The same command resumes from the newest checkpoint in --output_dir.
"""

import sys

from bert.reports import drawing
from bert.tasks import main as tasks_main
from bert.tasks.pretraining.inputs import Inputs
from bert.tasks.pretraining.settings import Settings
from bert.tasks.run_folder import RunFolder


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = tasks_main.parse(argv, Settings, __doc__)
    training, inputs = settings.training, Inputs.open(settings)
    with RunFolder.open(training, inputs.config, inputs.tokenizer) as folder:
        from bert.tasks.pretraining.run import Pretraining

        pretraining, wrote = Pretraining(settings, folder, inputs), []
        pretraining.run.start()
        if training.do_train:
            wrote += pretraining.train()
        if settings.do_eval:
            wrote += pretraining.evaluate()
        if wrote:
            print(f"wrote {' and '.join(wrote)}")
        if folder.is_chief:
            drawing.draw_trained(settings)


if __name__ == "__main__":
    sys.exit(tasks_main.run(main, sys.argv))
