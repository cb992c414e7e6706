r"""TFRecords -> pre-trained BERT: masked LM and next sentence prediction.

    python run_pretraining.py --do_train --do_eval \
        --input_file='records/wiki.tfrecord*' --output_dir=run \
        --bert_config_file=configs/bert_base.json

The same command goes on from the newest checkpoint in --output_dir.
"""

import os
import sys

from absl import flags

from common.errors import UserError
from modeling.config import BertConfig
from tasks import common_flags, output_dir, text_flags, training_flags
from tasks.pretraining import inputs as pretraining_records
from tasks.pretraining import run as pretraining_run


def define_flags(values: flags.FlagValues) -> None:
    """Defines this script's flags: the original's 22 and a few more."""
    training_flags.define_training(values)
    common_flags.define_lengths(values)
    values.set_default("eval_steps", 1000)
    for name, meaning in (
        ("input_file", "TFRecords: files and globs, with commas."),
        (
            "phases",
            "Instead of --input_file: TFRecords, their share of the steps and, "
            "if it differs, their batch size, as in "
            "'128/*.tfrecord*:90,512/*.tfrecord*:10:64'.",
        ),
        ("eval_input_file", "Held-out TFRecords; else those of training."),
        ("vocab_file", "Must be the records' own; theirs if not given."),
    ):
        flags.DEFINE_string(name, None, meaning, flag_values=values)
    for name, default, meaning in (
        ("do_eval", False, "Evaluate the newest checkpoint."),
        ("dynamic_masking", False, "Draw the masks again at each epoch."),
    ):
        flags.DEFINE_bool(name, default, meaning, flag_values=values)
    text_flags.define_case(values, None, "Must be the records' own casing.")
    for name, default, lowest, meaning in (
        ("num_train_steps", 100000, 1, "Last step."),
        ("num_warmup_steps", 10000, 0, "Steps of linear warm-up."),
        ("max_eval_steps", 100, 1, "At most so many batches evaluated."),
    ):
        flags.DEFINE_integer(
            name, default, meaning, flag_values=values, lower_bound=lowest
        )


def read_flags(argv: list[str]) -> pretraining_run.Job:
    """Reads and checks the command line."""
    values = common_flags.parse(argv, define_flags, __doc__)
    if not values.do_train and not values.do_eval:
        raise UserError("nothing to do", fix="pass --do_train or --do_eval")
    if values.early_stopping_patience and not values.eval_input_file:
        raise UserError(
            f"--early_stopping_patience={values.early_stopping_patience}",
            expected="--eval_input_file, on which evaluations get better",
        )
    train_for = training_flags.seconds(values.train_for)
    config = BertConfig.from_json_file(values.bert_config_file)
    inputs = pretraining_records.read_inputs(values, config)
    training_flags.check(values, [phase.batch_size for phase in inputs.phases])
    output_dir.check(values.output_dir, config)
    if inputs.vocab_file:
        output_dir.check_vocabulary(values.output_dir, inputs.vocab_file)
        if values.init_checkpoint:
            output_dir.check_beside(values.init_checkpoint, inputs.vocab_file)
    return pretraining_run.Job(values, config, inputs, train_for)


def main(argv: list[str]) -> None:
    """Runs the script."""
    job = read_flags(argv)
    values = job.flags
    inputs = job.inputs
    run = pretraining_run.Pretraining(job)  # makes the strategy
    # Without a manifest TensorFlow reads them, before which workers must meet.
    counts = [
        pretraining_records.check_records(records, job.config.vocab_size)
        for records in [phase.records for phase in inputs.phases]
        + [records for records in [inputs.held_out] if records]
    ]
    run.start()
    started = run.state.step
    if values.do_train:
        output_dir.check_steps(values.output_dir, started, run.learning_rate)
    output_dir.prepare(values.output_dir, job.config, inputs.vocab_file)
    wrote = []
    if values.do_train:
        run.train(counts[: len(inputs.phases)])
    if run.state.step > started:
        wrote.append(
            os.path.join(values.output_dir, f"model.ckpt-{run.state.step}")
        )
    if values.do_eval:
        wrote.append(
            output_dir.write_results(
                values.output_dir, run.state.step, run.evaluate()
            )
        )
    if wrote:
        print(f"wrote {' and '.join(wrote)}")


if __name__ == "__main__":
    sys.exit(training_flags.run(main, sys.argv))
