r"""Pre-trains BERT on TFRecords: masked LM and next sentence prediction.

    python run_pretraining.py --do_train --do_eval \
        --input_file='records/wiki.tfrecord*' --output_dir=run \
        --bert_config_file=bert/configs/bert_base.json

The same command resumes from the newest checkpoint in --output_dir.
"""

import sys

from bert.common import command_line
from bert.reports import drawing
from bert.runs import opening, program_cache, signals
from bert.tasks.pretraining.settings import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = command_line.parse(argv, Settings, __doc__)
    with opening.open_pretraining(settings) as (run, inputs):
        program_cache.use(run.config)

        # TensorFlow is imported late: invalid flags and files fail before.
        from bert.runs import pretraining

        pretraining.train_and_evaluate(run, inputs)
        drawing.draw_trained(settings, run.output_folder.is_chief)


if __name__ == "__main__":
    sys.exit(signals.run(main))
