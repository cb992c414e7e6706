r"""Pre-trains BERT on TFRecords: masked LM and next sentence prediction.

    python run_pretraining.py --do_train --do_eval \
        --input_file='records/wiki.tfrecord*' --output_dir=run \
        --bert_config_file=configs/bert_base.json

The same command resumes from the newest checkpoint in --output_dir.
"""

import dataclasses
import sys

from common import flags
from data.records.records import locating_damage
from modeling.config import BertConfig
from modeling.formats.model_folder import ModelFolder
from reports import drawing
from tasks import main as tasks_main
from tasks import run_folder
from tasks.pretraining.inputs import Inputs
from tasks.pretraining.settings import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = flags.parse(argv, Settings, __doc__)
    settings.check()
    training, wrote = settings.training, []
    config = BertConfig.from_json_file(training.model.bert_config_file)
    if settings.vocab_size:
        config = dataclasses.replace(config, vocab_size=settings.vocab_size)
    inputs = Inputs.open(settings, config)
    for phase in inputs.phases:
        training.check_micro_batches(phase.batch_size)
    tokenizer, start = inputs.tokenizer, training.model.init_checkpoint
    begun = run_folder.has_checkpoint(training.output_dir)
    if tokenizer and start and not begun:
        ModelFolder.open(start).check_vocabulary(tokenizer)
    with run_folder.RunFolder.open(training, config, tokenizer) as folder:
        from tasks.pretraining import run as pretraining_run

        pretraining = pretraining_run.Pretraining(settings, folder, inputs)
        run = pretraining.run
        run.start()
        started = run.step
        with locating_damage(inputs.sets):
            if training.do_train:
                run.trainer.train(
                    pretraining.schedules(),
                    pretraining.validation(),
                    training.seconds,
                )
            if run.step > started:
                wrote.append(run.checkpoint())
            if settings.do_eval:
                metrics = pretraining.evaluate()
                report = pretraining.report
                wrote += folder.write_results(run.step, metrics, report)
        if wrote:
            print(f"wrote {' and '.join(wrote)}")
        if folder.is_chief:
            drawing.draw_trained(settings)


if __name__ == "__main__":
    sys.exit(tasks_main.run(main, sys.argv))
