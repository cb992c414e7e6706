r"""Pre-trains BERT on TFRecords: masked LM and next sentence prediction.

    python run_pretraining.py --do_train --do_eval \
        --input_file='records/wiki.tfrecord*' --output_dir=run \
        --bert_config_file=configs/bert_base.json

The same command resumes from the newest checkpoint in --output_dir.
"""

import dataclasses
import sys

from data.records.records import locating_damage
from modeling.config import BertConfig
from reports import drawing
from tasks import eval_report, output_dir
from tasks import main as tasks_main
from tasks.pretraining import run as pretraining_run
from tasks.pretraining.inputs import Inputs
from tasks.pretraining.settings import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = tasks_main.parse(argv, Settings, __doc__)
    settings.check()
    training = settings.training
    config = BertConfig.from_json_file(training.model.bert_config_file)
    if settings.vocab_size:
        config = dataclasses.replace(config, vocab_size=settings.vocab_size)
    inputs = Inputs.open(settings, config)
    training.check([phase.batch_size for phase in inputs.phases])
    output_dir.check(training.output_dir, config, inputs.vocab_file)
    if inputs.vocab_file and training.model.init_checkpoint:
        output_dir.check_beside(
            training.model.init_checkpoint, inputs.vocab_file
        )
    pretraining = pretraining_run.Pretraining(settings, config, inputs)
    # TensorFlow reads records without a manifest; the strategy comes first.
    run = pretraining.run
    counts = pretraining_run.count_records(
        inputs, training.do_train, config.vocab_size, run.strategy
    )
    run.start()
    started = run.step
    if training.do_train:
        output_dir.check_steps(training.output_dir, started, run.learning_rate)
    output_dir.prepare(training.output_dir, config, inputs.vocab_file)
    wrote = []
    if training.do_train:
        with locating_damage(inputs.sets):
            run.trainer.train(
                pretraining.schedules(counts),
                pretraining.validation(),
                training.seconds,
            )
    if run.step > started:
        wrote.append(run.checkpoint())
    if settings.do_eval:
        with locating_damage(inputs.sets):
            metrics = pretraining.evaluate()
        references = pretraining.references
        wrote.append(
            output_dir.write_results(
                training.output_dir, run.step, metrics, references
            )
        )
        report = {"task": "pretraining", "references": references}
        wrote.append(eval_report.write(training.output_dir, metrics, report))
    if wrote:
        print(f"wrote {' and '.join(wrote)}")
    drawing.draw_trained(settings)


if __name__ == "__main__":
    sys.exit(tasks_main.run(main, sys.argv))
