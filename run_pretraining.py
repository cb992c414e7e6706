r"""Pre-trains BERT on TFRecords: masked LM and next sentence prediction.

    python run_pretraining.py --do_train --do_eval \
        --input_file='records/wiki.tfrecord*' --output_dir=run \
        --bert_config_file=bert/configs/bert_base.json

The same command resumes from the newest checkpoint in --output_dir.
"""

import sys

from bert.common import flags
from bert.reports import drawing
from bert.tasks import main as tasks_main
from bert.tasks.pretraining.inputs import Inputs
from bert.tasks.pretraining.settings import Settings
from bert.tasks.run_folder import RunFolder


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = flags.parse(argv, Settings, __doc__)
    settings = tasks_main.with_local_model(settings)
    inputs = Inputs.open(settings)
    with RunFolder.open(settings, inputs.config, inputs.tokenizer) as folder:
        # TensorFlow is imported late: invalid flags and files fail before.
        from bert.data.records.content_check import locating_damage
        from bert.tasks.pretraining import task as pretraining

        run, phases = pretraining.open_run(settings, folder, inputs)
        first, wrote = run.step, []

        # Errors name the file of a record that cannot be read.
        with locating_damage(inputs.sets):
            if settings.do_train:
                run.fit(phases)
                wrote += [run.checkpoint] if run.step > first else []
            if settings.do_eval:
                metrics, report = run.task.evaluate(run)
                wrote += folder.write_results(run.step, metrics, report)
        if wrote:
            print(f"wrote {' and '.join(wrote)}")

        drawing.draw_trained(settings, folder.is_chief)


if __name__ == "__main__":
    sys.exit(tasks_main.run(main, sys.argv))
