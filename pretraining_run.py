"""One run of pre-training: its model, its data, and what it leaves behind."""

import dataclasses

from absl import flags

import common_flags
import pretraining_records
from data import features
from errors import UserError
from modeling.config import BertConfig
from progress import say


@dataclasses.dataclass(frozen=True)
class Job:
    """What the command line asks for, checked."""

    flags: flags.FlagValues
    config: BertConfig
    inputs: pretraining_records.Inputs


class Pretraining:
    """One run: the model, its optimizer, and where they are kept."""

    def __init__(self, job: Job):
        from modeling import checkpoints, dropout, models, pretraining_losses
        from training import (
            distribution,
            loop,
            optimization,
            saver,
            state,
            steps,
        )

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
        task = steps.Task(
            model,
            pretraining_losses.OBJECTIVES,
            pretraining_losses.pretraining_weights,
            pretraining_losses.pretraining_sums,
            dropout.dropout_seed,
        )
        self.trainer = loop.Trainer(
            steps.Steps(
                task, optimizer, strategy, values.random_seed, values.use_xla
            )
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
                    self.state.step,
                    result,
                    self.trainer.steps.task.objectives,
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
