"""A pre-training run: model, data and evaluation."""

import dataclasses
import functools

from bert.common import storage
from bert.common.errors import UserError
from bert.common.progress import say
from bert.data.pretraining import dynamic_masking, masking
from bert.data.records import reader
from bert.data.records.records import Records, fingerprint, locating_damage
from bert.modeling import losses, models
from bert.tasks import training_run
from bert.tasks.pretraining.inputs import Inputs, Phase
from bert.tasks.pretraining.references import TargetCounts
from bert.tasks.pretraining.settings import Settings
from bert.tasks.run_folder import RunFolder
from bert.training import workers
from bert.training.loop import Schedule


def count_records(
    inputs: Inputs,
    do_train: bool,
    vocab_size: int,
    strategy,
) -> list[int]:
    """Checks and counts the records that this process and its workers read.

    The chief checks them for all.

    Args:
        inputs: the records.
        do_train: whether the run trains.
        vocab_size: ids must be below it.
        strategy: of the run.

    Returns:
        the number of records of each phase, if the run trains.

    Raises:
        UserError: as for `Records.count`.
    """
    phases = inputs.phases if do_train else []
    sets = [phase.records for phase in phases]
    sets += [inputs.held_out] if inputs.held_out else []
    if not sets:
        sets = [inputs.phases[-1].records]
    counts = [0] * len(sets)
    if workers.is_chief():
        try:
            counts = [x.count(vocab_size) for x in sets]
        except UserError:
            workers.gather(strategy, *[-1] * len(sets))
            raise
    gathered = workers.gather(strategy, *counts)
    if gathered.min() < 0:
        raise UserError(
            "the first worker rejected the records", fix="see its log"
        )
    return [int(count) for count in gathered.max(0)][: len(phases)]


class Pretraining:
    """A run of masked LM and next sentence prediction.

    Args:
        settings: settings of the script.
        folder: the folder of the run.
        inputs: checked records.

    Attributes:
        run: the `training_run.TrainingRun`.
    """

    def __init__(
        self,
        settings: Settings,
        folder: RunFolder,
        inputs: Inputs,
    ):
        self._settings, self._inputs = settings, inputs
        self._folder = folder
        last = inputs.phases[-1].records
        script_settings = dataclasses.replace(  # not the flags' defaults
            settings,
            max_seq_length=last.max_seq_length,
            max_predictions_per_seq=last.max_predictions_per_seq,
        )
        self.run = training_run.TrainingRun(
            script_settings,
            settings.training,
            folder,
            training_run.TrainingTask(
                self._build_model,
                losses.OBJECTIVES
                if settings.use_next_sentence
                else (losses.MASKED_LM,),
                losses.pretraining_weights,
                losses.pretraining_sums,
                records=fingerprint([phase.records for phase in inputs.phases]),
                num_train_steps=settings.num_train_steps,
                num_warmup_steps=settings.num_warmup_steps,
            ),
        )
        for phase in inputs.phases if settings.training.do_train else ():
            self.run.check_batch_size("train_batch_size", phase.batch_size)
        if settings.do_eval or inputs.held_out:
            self.run.check_batch_size(
                "eval_batch_size", settings.training.eval_batch_size
            )
        # TensorFlow reads records without a manifest; the strategy comes first.
        self._counts = count_records(
            inputs,
            settings.training.do_train,
            folder.config.vocab_size,
            self.run.strategy,
        )

    def _build_model(self):
        model = models.build_pretraining_model(
            self._folder.config,
            self._settings.training.random_seed,
            packed=self._inputs.phases[0].records.is_packed,
        )
        if not self._settings.use_next_sentence:
            model.get_layer("bert").get_layer("pooler").trainable = False
            model.get_layer("seq_relationship").trainable = False
        return model

    def train(self) -> list[str]:
        """Trains to the last step.

        Returns:
            the checkpoint's prefix, if a step was taken.
        """
        start, inputs = self.run.step, self._inputs
        validation = None
        if inputs.held_out:
            validation = self.run.validation(self._scores, "loss", is_loss=True)
        with locating_damage(inputs.sets):
            schedules = list(map(self._schedule, inputs.phases, self._counts))
            self.run.train(schedules, validation)
        return [self.run.checkpoint()] if self.run.step > start else []

    def evaluate(self) -> list[str]:
        """Scores the current weights on held-out records, else on the last.

        Returns:
            the paths that were written.
        """
        counts = TargetCounts(self._folder.config.vocab_size)
        with locating_damage(self._inputs.sets):
            metrics = self._scores(counts)
        report = {
            "task": "pretraining",
            "records": storage.name_of(self._evaluated.files),
            "references": counts.references(),
        }
        return self._folder.write_results(self.run.step, metrics, report)

    @property
    def _evaluated(self) -> Records:
        """The held-out records, else the last ones."""
        inputs = self._inputs
        return inputs.held_out or inputs.phases[-1].records

    def _scores(self, counts: TargetCounts | None = None) -> dict[str, float]:
        """Losses and accuracies; counts the targets too."""
        settings, records = self._settings, self._evaluated
        batches = reader.evaluation_batches(
            records.files,
            records.schema,
            settings.training.eval_batch_size,
            settings.max_eval_steps,
        )
        if counts:
            batches = counts.watch(batches)
        return self.run.trainer.evaluate(batches)

    def _schedule(self, phase: Phase, num_records: int) -> Schedule:
        """Schedule of a phase."""
        training = self._settings.training
        return self.run.schedule(
            functools.partial(self._batches, phase, num_records),
            phase.batch_size,
            phase.last,
            eval_steps=training.eval_steps if self._inputs.held_out else 0,
            records_of=lambda step: reader.report_records(
                phase.records.files,
                num_records,
                phase.batch_size,
                training.random_seed,
                step - phase.first,
            ),
        )

    def _batches(self, phase: Phase, num_records: int):
        """Batches from the current step on."""
        if len(self._inputs.phases) > 1:
            say(
                f"steps {phase.first + 1} to {phase.last}: {num_records} "
                f"records of {phase.records.max_seq_length} tokens, batches of "
                f"{phase.batch_size}"
            )
        step = self.run.step - phase.first
        batches = reader.training_batches(
            phase.records.files,
            num_records,
            phase.records.schema,
            phase.batch_size,
            self._settings.training.random_seed,
            step,
            workers.share(),
        )
        if phase.masks is None:
            return batches
        return dynamic_masking.remask_batches(
            batches,
            phase.masks,
            masking.Vocabulary.of(self._inputs.tokenizer.vocab),
            step,
            workers.share(),
        )
