"""One run of pre-training: its model, its data, and what it leaves behind."""

import dataclasses
import os

from absl import flags

from common.progress import say
from data import features
from modeling.config import BertConfig
from tasks import common_flags, output_dir, training_flags
from tasks.pretraining import inputs as pretraining_records


@dataclasses.dataclass(frozen=True)
class Job:
    """What the command line asks for, checked.

    Attributes:
        flags: of run_pretraining.
        config: sizes of the network.
        inputs: records.
        train_for: seconds, or None.
    """

    flags: flags.FlagValues
    config: BertConfig
    inputs: pretraining_records.Inputs
    train_for: float | None


class Pretraining:
    """One run: the model, its optimizer, and where they are kept."""

    def __init__(self, job: Job):
        from modeling import models
        from training import distribution, optimization, precision

        self.job = job
        values = job.flags
        strategy = distribution.make_strategy(
            **{name: values[name].value for name in common_flags.DEVICE_FLAGS}
        )
        for phase in job.inputs.phases if values.do_train else ():
            distribution.check_batch_size(
                strategy,
                phase.batch_size,
                "train_batch_size",
                values.gradient_accumulation_steps,
            )
        if values.do_eval or job.inputs.held_out:
            distribution.check_batch_size(
                strategy, values.eval_batch_size, "eval_batch_size"
            )
        self.learning_rate = optimization.WarmupLinearDecay(
            values.learning_rate,
            values.num_train_steps,
            values.num_warmup_steps,
        )
        computed_in = precision.choose(values.precision, strategy)
        with strategy.scope():
            with precision.computing_in(computed_in):
                model = models.build_pretraining_model(
                    job.config,
                    values.random_seed,
                    packed=job.inputs.packed,
                )
            optimizer = optimization.AdamWeightDecay(
                self.learning_rate, rule=values.optimizer
            )
            optimizer.build(model.trainable_variables)
        self._make_session(model, optimizer, strategy)

    def _make_session(self, model, optimizer, strategy) -> None:
        """Makes what trains, and what it keeps."""
        from modeling import checkpoints, counts, fused_ops, pretraining_losses
        from training import loop, saver, session, state, steps

        job, values = self.job, self.job.flags
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
            fused_ops.step_scope(job.config, **training_flags.ways(values)),
            counts.batch_tokens,
        )
        self.trainer = loop.Trainer(
            steps.Steps(
                task,
                optimizer,
                strategy,
                values.random_seed,
                values.use_xla,
                values.gradient_accumulation_steps,
            )
        )
        self.settings = {
            **values.flag_values_dict(),
            "do_lower_case": job.inputs.do_lower_case,
            "strip_accents": job.inputs.strip_accents,
            "records": pretraining_records.fingerprint(job.inputs),
            "environment": state.environment(strategy),
        }
        self.best = saver.Saver(
            os.path.join(values.output_dir, output_dir.BEST), 1
        )
        self.session = session.Session(
            self.trainer,
            self.state,
            self.best,
            values.output_dir,
            self.settings,
        )

    def start(self) -> None:
        """Takes up the run in output_dir, or --init_checkpoint."""
        from modeling import checkpoints

        values = self.job.flags
        output_dir.check_workers(self.trainer.steps.strategy, self.settings)
        restored = self.session.resume(values.do_train)
        if restored:
            output_dir.tell_changes(restored.settings, self.settings)
            return
        if not values.init_checkpoint:
            if values.do_train:
                return
            raise output_dir.no_checkpoint(values.output_dir)
        path = checkpoints.resolve(values.init_checkpoint)
        fresh = checkpoints.assign(self.named, checkpoints.read(path), path)
        output_dir.tell_start(path, fresh)

    def train(self, counts: list[int]) -> None:
        """Trains to the last step.

        Args:
            counts: records of each phase.
        """
        import tensorflow as tf

        parts = [
            self._part(phase, count)
            for phase, count in zip(self.job.inputs.phases, counts, strict=True)
        ]
        try:
            self.session.train(parts, self._held_out(), self.job.train_for)
        except (
            tf.errors.DataLossError,
            tf.errors.InvalidArgumentError,
            tf.errors.NotFoundError,
        ):
            for phase in self.job.inputs.phases:
                pretraining_records.name_damage(phase.records)
            raise

    def _part(self, phase: pretraining_records.Phase, num_records: int):
        """A phase as `training.session` takes it."""
        from data.records import reader
        from training import loop

        values = self.job.flags
        schedule = loop.Schedule(
            num_train_steps=phase.last,
            log_steps=values.log_steps,
            save_steps=values.save_checkpoints_steps,
            eval_steps=values.eval_steps if self.job.inputs.held_out else 0,
            iterations_per_loop=values.iterations_per_loop,
            batch_size=phase.batch_size,
            learning_rate=self.learning_rate,
            skip_steps=training_flags.step_ranges(values.skip_steps),
            records_of=lambda step: reader.tell_records(
                phase.records.files,
                num_records,
                phase.batch_size,
                values.random_seed,
                step - phase.first,
            ),
        )

        def batches():
            if len(self.job.inputs.phases) > 1:
                length = phase.records.schema[features.INPUT_IDS][1]
                say(
                    f"steps {phase.first + 1} to {phase.last}: {num_records} "
                    f"records of {length} pieces, {phase.batch_size} a batch"
                )
            return self._batches(phase, num_records)

        return batches, schedule

    def _batches(self, phase: pretraining_records.Phase, num_records: int):
        """Batches from the present step on."""
        from data.pretraining import dynamic_masking, masking
        from data.records import reader
        from data.text import vocabulary

        step = self.state.step - phase.first
        batches = reader.training_batches(
            phase.records.files,
            num_records,
            phase.records.schema,
            phase.batch_size,
            self.job.flags.random_seed,
            step,
        )
        if phase.masks is None:
            return batches
        vocab = vocabulary.read_vocabulary(self.job.inputs.vocab_file)
        return dynamic_masking.remask_batches(
            batches,
            phase.masks,
            masking.Vocabulary.of(vocab),
            num_records,
            step,
        )

    def _held_out(self):
        """Evaluates while training, if there is held-out text."""
        from training import logs, validation

        if not self.job.inputs.held_out:
            return None
        values = self.job.flags
        best = validation.Best(
            self.best,
            self.named,
            "loss",
            is_loss=True,
            patience=values.early_stopping_patience,
        )
        objectives = self.trainer.steps.task.objectives
        return validation.HeldOut(
            self.evaluate,
            lambda step, result: logs.tell_evaluation(step, result, objectives),
            best,
        )

    def evaluate(self) -> dict[str, float]:
        """Evaluates the present weights on held-out text, if there is."""
        from data.records import reader

        values, inputs = self.job.flags, self.job.inputs
        records = inputs.held_out or inputs.phases[-1].records
        return self.trainer.evaluate(
            reader.evaluation_batches(
                records.files,
                records.schema,
                values.eval_batch_size,
                values.max_eval_steps,
            )
        )
