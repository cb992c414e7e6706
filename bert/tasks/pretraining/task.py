"""Task of run_pretraining.py: masked LM and next sentence prediction."""

import dataclasses
from typing import Any

import keras

from bert.common.errors import UserError, name_of
from bert.common.progress import say
from bert.data.pretraining import dynamic_masking, masking
from bert.data.records import content_check, reader
from bert.data.records.shards import Records, fingerprint
from bert.modeling import losses, models
from bert.modeling.formats.model_folder import ModelFolder
from bert.tasks import run_folder, start
from bert.tasks.pretraining.inputs import Inputs, PhaseInputs
from bert.tasks.pretraining.references import TargetCounts
from bert.tasks.pretraining.settings import Settings
from bert.tasks.run_folder import RunFolder
from bert.training import collectives, workers
from bert.training.optimization import (
    Schedule,
    WarmupClockDecay,
    WarmupLinearDecay,
    WarmupStableDecay,
)
from bert.training.run import Run
from bert.training.task import Phase, Task


def count_records(
    inputs: Inputs,
    do_train: bool,
    vocab_size: int,
    strategy,
) -> list[int]:
    """Checks and counts the records that this process and its workers read.

    The chief checks them for all workers.

    Args:
        inputs: Inputs. The records.
        do_train: bool. Whether the run trains.
        vocab_size: int. Token ids must be below it.
        strategy: tf.distribute.Strategy. Strategy of the run.

    Returns:
        List of int: number of records of each phase, if the run trains.

    Raises:
        UserError: see `content_check.count_records`.
    """
    parts = inputs.phases if do_train else []
    sets = [part.records for part in parts]
    sets += [inputs.held_out] if inputs.held_out else []

    # The run only evaluates, on the records that `evaluated` selects.
    if not sets:
        sets = [inputs.phases[-1].records]
    counts = [0] * len(sets)

    # The other workers wait for the counts, so they must also get errors.
    if workers.is_chief():
        try:
            counts = [content_check.count_records(x, vocab_size) for x in sets]
        except UserError:
            collectives.gather(strategy, *[-1] * len(sets))
            raise
    gathered = collectives.gather(strategy, *counts)
    if gathered.min() < 0:
        raise UserError(
            "the first worker rejected the records", fix="see its log"
        )
    return [int(count) for count in gathered.max(0)][: len(parts)]


def open_run(
    settings: Settings, folder: RunFolder, inputs: Inputs
) -> tuple[Run, list[Phase]]:
    """Builds the network, checks the records, and loads the first weights.

    Args:
        settings: Settings. Settings of the script.
        folder: RunFolder. Folder of the run.
        inputs: Inputs. Config and records.

    Returns:
        The run, and the phases of its training.

    Raises:
        UserError: a batch does not divide evenly over the devices, a record
            is damaged, or the weights do not fit.
    """
    last = inputs.phases[-1].records
    settings = dataclasses.replace(  # the records' lengths, not the defaults
        settings,
        max_seq_length=last.max_seq_length,
        max_predictions_per_seq=last.max_predictions_per_seq,
    )
    task = make_task(settings, inputs)

    # Without its own checkpoint the run starts from other weights.
    model = ModelFolder.open(settings.init_checkpoint)
    if model.path and not run_folder.has_checkpoint(folder.shared):
        model.check_sizes(inputs.config)
    run = start.open_run(settings, folder, task)

    for part in inputs.phases if settings.do_train else ():
        start.check_batch_size(run, "train_batch_size", part.batch_size)
    if settings.do_eval or inputs.held_out:
        size = settings.eval_batch_size
        start.check_batch_size(run, "eval_batch_size", size)
    # Without a manifest TensorFlow reads the records: make the strategy first.
    counts = count_records(
        inputs,
        settings.do_train,
        inputs.config.vocab_size,
        run.steps.strategy,
    )

    # Last, because it writes the first files of the run.
    start.load(run, settings, folder, model)
    pairs = zip(inputs.phases, counts)
    return run, [phase(settings, inputs, *pair) for pair in pairs]


def make_task(settings: Settings, inputs: Inputs) -> Task:
    """Makes the task: network, losses and evaluation.

    Args:
        settings: Settings. Settings of the script.
        inputs: Inputs. Config and records.
    """
    objectives = losses.OBJECTIVES
    if not settings.use_next_sentence:
        objectives = (losses.MASKED_LM,)

    def build() -> keras.Model:
        model = models.build_pretraining_model(
            inputs.config,
            settings.random_seed,
            packed=inputs.phases[0].records.is_packed,
        )

        # Without its objective this head would not be trained.
        if not settings.use_next_sentence:
            model.get_layer("bert").get_layer("pooler").trainable = False
            model.get_layer("seq_relationship").trainable = False
        return model

    def validate(run: Run) -> dict[str, float]:
        return run.means(batches_to_evaluate(settings, inputs))

    def evaluate(run: Run) -> tuple[dict[str, float], dict]:
        counts = TargetCounts(inputs.config.vocab_size)
        metrics = run.means(counts.watch(batches_to_evaluate(settings, inputs)))
        return metrics, {
            "task": "pretraining",
            "records": name_of(evaluated(inputs).files),
            "references": counts.references(),
        }

    return Task(
        "pretraining",
        build,
        objectives,
        losses.pretraining_weights,
        losses.pretraining_sums,
        schedule(settings),
        records=fingerprint([part.records for part in inputs.phases]),
        metric="loss",
        is_loss=True,
        validate=validate if inputs.held_out else None,
        evaluate=evaluate,
    )


def schedule(settings: Settings) -> Schedule:
    """Learning-rate schedule of the flags."""
    kind = settings.schedule
    peak, steps = settings.learning_rate, settings.num_train_steps
    warmup = settings.num_warmup_steps
    if kind == "linear":
        return WarmupLinearDecay(peak, steps, warmup)
    if kind == "clock":
        return WarmupClockDecay(peak, steps, warmup, settings.seconds)
    return WarmupStableDecay(peak, steps, warmup, settings.num_decay_steps)


def evaluated(inputs: Inputs) -> Records:
    """Records to evaluate: held-out, else the last training records."""
    return inputs.held_out or inputs.phases[-1].records


def batches_to_evaluate(settings: Settings, inputs: Inputs) -> Any:
    """Batches of the records to evaluate."""
    records = evaluated(inputs)
    return reader.evaluation_batches(
        records.files,
        records.schema,
        settings.eval_batch_size,
        settings.max_eval_steps,
    )


def phase(
    settings: Settings, inputs: Inputs, part: PhaseInputs, num_records: int
) -> Phase:
    """Phase that trains on a part of the records.

    Args:
        settings: Settings. Settings of the script.
        inputs: Inputs. Config and records.
        part: PhaseInputs. Records and steps of the phase.
        num_records: int. Number of its records.
    """
    files, seed = part.records.files, settings.random_seed

    def batches(run: Run) -> Any:
        if len(inputs.phases) > 1:
            say(
                f"steps {part.first + 1} to {part.last}: {num_records} "
                f"records of {part.records.max_seq_length} tokens, batches of "
                f"{part.batch_size}"
            )

        # Steps are counted within the phase, also when the run resumes.
        step, share = run.step - part.first, workers.share()
        unmasked = reader.training_batches(
            files,
            num_records,
            part.records.schema,
            part.batch_size,
            seed,
            step,
            share,
        )
        if part.masks is None:
            return unmasked

        # Masks depend on the step, so that a resumed run draws the same.
        vocab = masking.Vocabulary.of(inputs.tokenizer.vocab)
        return dynamic_masking.remask_batches(
            unmasked, part.masks, vocab, step, share
        )

    def records_of(step: int) -> str:
        return reader.report_records(
            files, num_records, part.batch_size, seed, step - part.first
        )

    return Phase(part.last, part.batch_size, batches, records_of)
