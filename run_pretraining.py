r"""TFRecords -> pre-trained BERT: masked LM and next sentence prediction.

    python run_pretraining.py --do_train --do_eval \
        --input_file='records/wiki.tfrecord*' --output_dir=run \
        --bert_config_file=configs/bert_base.json

The same command goes on from the newest checkpoint in --output_dir.
"""

import dataclasses
import os
import sys

from absl import flags

import common_flags
import pretraining_records
import run_folder
from data import features
from errors import UserError
from modeling.config import BertConfig
from progress import say


def define_flags(values: flags.FlagValues) -> None:
    """Defines this script's flags: the original's 22 and a few more."""
    common_flags.define_model(values)
    common_flags.define_lengths(values)
    common_flags.define_seed(values)
    common_flags.define_devices(values)
    for name, required, meaning in (
        ("input_file", True, "TFRecords: files and globs, with commas."),
        ("output_dir", True, "Folder of the checkpoints and results."),
        ("eval_input_file", False, "Held-out TFRecords; else input_file."),
    ):
        flags.DEFINE_string(
            name, None, meaning, flag_values=values, required=required
        )
    for name, meaning in (
        ("do_train", "Train."),
        ("do_eval", "Evaluate the newest checkpoint."),
        ("use_xla", "Compile forward and backward pass with XLA."),
        ("dynamic_masking", "Draw the masks of the records at each epoch."),
    ):
        flags.DEFINE_bool(name, False, meaning, flag_values=values)
    for name, default, lowest, meaning in (
        ("train_batch_size", 32, 1, "Rows of a batch, over all devices."),
        ("eval_batch_size", 8, 1, "Rows of a batch in evaluation."),
        ("num_train_steps", 100000, 1, "Last step."),
        ("num_warmup_steps", 10000, 0, "Steps of linear warm-up."),
        ("save_checkpoints_steps", 1000, 1, "Steps between checkpoints."),
        ("keep_checkpoint_max", 5, 1, "So many checkpoints are kept."),
        ("iterations_per_loop", 1000, 1, "At most so many steps a call."),
        ("log_steps", 100, 1, "Steps between two points of the curves."),
        ("max_eval_steps", 100, 1, "At most so many batches evaluated."),
        ("eval_steps", 1000, 1, "Steps between evaluations of held-out text."),
    ):
        flags.DEFINE_integer(
            name, default, meaning, flag_values=values, lower_bound=lowest
        )
    flags.DEFINE_float(
        "learning_rate",
        5e-5,
        "Peak learning rate of Adam.",
        flag_values=values,
        lower_bound=0.0,
    )


@dataclasses.dataclass(frozen=True)
class Job:
    """What the command line asks for, checked."""

    flags: flags.FlagValues
    config: BertConfig
    inputs: pretraining_records.Inputs


def read_flags(argv: list[str]) -> Job:
    """Reads and checks the command line."""
    values = common_flags.parse(argv, define_flags, __doc__)
    if not values.do_train and not values.do_eval:
        raise UserError("nothing to do", fix="pass --do_train or --do_eval")
    config = BertConfig.from_json_file(values.bert_config_file)
    inputs = pretraining_records.read_inputs(values, config)
    run_folder.check(values.output_dir, config)
    return Job(values, config, inputs)


class Pretraining:
    """One run: the model, its optimizer, and where they are kept."""

    def __init__(self, job: Job):
        from modeling import checkpoints, dropout, models, pretraining_losses
        from training import distribution, loop, optimization, saver, state

        self.job = job
        values = job.flags
        strategy = distribution.make_strategy(
            **{name: values[name].value for name in common_flags.DEVICE_FLAGS}
        )
        for flag in ("train_batch_size", "eval_batch_size"):
            distribution.check_batch_size(strategy, values[flag].value, flag)
        self.learning_rate = optimization.WarmupLinearDecay(
            values.learning_rate,
            values.num_train_steps,
            values.num_warmup_steps,
        )
        with strategy.scope():
            model = models.build_pretraining_model(
                job.config,
                values.random_seed,
                packed=features.SEQUENCE_IDS in job.inputs.schema,
            )
            optimizer = optimization.AdamWeightDecay(self.learning_rate)
            optimizer.build(model.trainable_variables)
        self.named = checkpoints.model_variables(model)
        self.state = state.TrainingState(
            self.named,
            optimizer,
            saver.Saver(values.output_dir, values.keep_checkpoint_max),
        )
        task = loop.Task(
            model,
            pretraining_losses.OBJECTIVES,
            pretraining_losses.pretraining_weights,
            pretraining_losses.pretraining_sums,
            dropout.dropout_seed,
        )
        self.trainer = loop.Trainer(
            task, optimizer, strategy, values.random_seed, values.use_xla
        )

    def start(self) -> None:
        """Takes up the run in output_dir, or --init_checkpoint."""
        from modeling import checkpoints

        values = self.job.flags
        if self.state.restore():
            return
        if not values.init_checkpoint:
            if values.do_train:
                return
            raise UserError(
                "no checkpoint",
                path=values.output_dir,
                expected="a trained model",
                fix="pass --do_train or --init_checkpoint",
            )
        path = checkpoints.resolve(values.init_checkpoint)
        fresh = checkpoints.assign(self.named, checkpoints.read(path), path)
        say(
            f"starting from {path}; "
            + (f"fresh: {', '.join(fresh)}" if fresh else "all variables found")
        )

    def save(self) -> None:
        """Writes a checkpoint."""
        settings = self.job.flags.flag_values_dict()
        settings["do_lower_case"] = self.job.inputs.do_lower_case
        self.state.save(settings)

    def training_batches(self, num_records: int):
        """Batches from the present step on."""
        from data import dynamic_masking, masking, reader, vocabulary

        inputs, values = self.job.inputs, self.job.flags
        batches = reader.training_batches(
            inputs.train.files,
            num_records,
            inputs.schema,
            values.train_batch_size,
            values.random_seed,
            self.state.step,
        )
        if inputs.masks is None:
            return batches
        vocab = vocabulary.read_vocabulary(inputs.vocab_file)
        return dynamic_masking.remask_batches(
            batches,
            inputs.masks,
            masking.Vocabulary.of(vocab),
            num_records,
            self.state.step,
        )

    def train(self, num_records: int) -> None:
        """Trains to the last step."""
        from training import logs, loop

        values = self.job.flags
        log = logs.TrainingLog(values.output_dir, self.state.step)

        def evaluate():
            if self.job.inputs.held_out:
                result = self.evaluate()
                logs.tell_evaluation(
                    self.state.step, result, self.trainer.task.objectives
                )
                log.write(self.state.step, "eval", result)

        self.trainer.train(
            self.training_batches(num_records),
            loop.Schedule(
                num_train_steps=values.num_train_steps,
                log_steps=values.log_steps,
                save_steps=values.save_checkpoints_steps,
                eval_steps=values.eval_steps if self.job.inputs.held_out else 0,
                iterations_per_loop=values.iterations_per_loop,
                batch_size=values.train_batch_size,
                learning_rate=self.learning_rate,
            ),
            log,
            self.save,
            evaluate,
        )

    def evaluate(self) -> dict[str, float]:
        """Evaluates the present weights on held-out text, if there is."""
        from data import reader

        values = self.job.flags
        return self.trainer.evaluate(
            reader.evaluation_batches(
                (self.job.inputs.held_out or self.job.inputs.train).files,
                self.job.inputs.schema,
                values.eval_batch_size,
                values.max_eval_steps,
            )
        )


def main(argv: list[str]) -> None:
    """Runs the script."""
    job = read_flags(argv)
    values = job.flags
    inputs = job.inputs
    num_records, *_ = [
        pretraining_records.count_records(
            records, inputs.schema, job.config.vocab_size
        )
        for records in (inputs.train, inputs.held_out)
        if records
    ]
    run = Pretraining(job)
    run.start()
    if values.do_train:
        run_folder.check_steps(
            values.output_dir, run.state.step, run.learning_rate
        )
    run_folder.prepare(values.output_dir, job.config, inputs.vocab_file)
    wrote = []
    if values.do_train and run.state.step < values.num_train_steps:
        run.train(num_records)
        wrote.append(
            os.path.join(values.output_dir, f"model.ckpt-{run.state.step}")
        )
    if values.do_eval:
        wrote.append(
            run_folder.write_results(
                values.output_dir, run.state.step, run.evaluate()
            )
        )
    if wrote:
        print(f"wrote {' and '.join(wrote)}")


if __name__ == "__main__":
    sys.exit(common_flags.run(main, sys.argv))
