"""Pre-training: masked LM and next sentence prediction."""

import keras
import tensorflow as tf

from bert.common.errors import UserError, name_of
from bert.common.progress import log
from bert.data.pretraining import dynamic_masking, masking
from bert.data.records import content_check, reader
from bert.data.records.shards import Records, fingerprint
from bert.modeling import losses, networks
from bert.runs import start, written_files
from bert.tasks.pretraining.baselines import TargetCounts
from bert.tasks.pretraining.inputs import Inputs, PhaseInputs
from bert.tasks.pretraining.settings import Settings
from bert.tasks.run import Run
from bert.training import collectives, distribution, training_loop, workers
from bert.training.objective import Objective, Phase
from bert.training.optimization import (
    WarmupLinearDecay,
    WarmupStableDecay,
)
from bert.training.trainer import Trainer


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


def train_and_evaluate(run: Run[Settings], inputs: Inputs) -> None:
    """Trains and evaluates, as the settings request.

    Prints the paths of written files.

    Args:
        run: Run. The run.
        inputs: Inputs. Its records.

    Raises:
        UserError: a batch does not divide evenly over the devices, a record
            is damaged, or the weights do not fit.
    """
    settings = run.settings
    trainer, phases = build_trainer(run, inputs)
    first, wrote = trainer.step, []

    def validate() -> dict[str, float]:
        return trainer.evaluate(batches_to_evaluate(run.settings, inputs))

    # Errors name the file of a record that cannot be read.
    with content_check.locating_damage(inputs.sets):
        if settings.do_train:
            training_loop.fit(
                trainer, phases, validate if inputs.held_out else None
            )
            wrote += [trainer.checkpoint] if trainer.step > first else []
        if settings.do_eval:
            metrics, report = evaluate(run, inputs, trainer)
            wrote += written_files.write_results(
                run.output_folder, trainer.step, metrics, report
            )
    if wrote:
        print(f"wrote {' and '.join(wrote)}")


def build_trainer(
    run: Run[Settings], inputs: Inputs
) -> tuple[Trainer, list[Phase]]:
    """Builds the network, checks the records, and loads the first weights.

    Args:
        run: Run. The run.
        inputs: Inputs. Its records.

    Returns:
        The run, and the phases of its training.

    Raises:
        UserError: see `train_and_evaluate`.
    """
    settings = run.settings
    # Without its own checkpoint the run starts from other weights.
    if run.model.path and not run.resumed:
        run.model.check_sizes(run.config)
    data_digest = fingerprint([part.records for part in inputs.phases])
    devices = start.choose_devices(settings)
    with devices.scope():
        network = build_network(run, inputs)
    trainer = start.build_trainer(
        run, devices, network, objective_of(settings), data_digest
    )

    strategy = devices.strategy
    parts = settings.gradient_accumulation_steps
    for part in inputs.phases if settings.do_train else ():
        distribution.check_batch_size(
            strategy, part.batch_size, "train_batch_size", parts
        )
    if settings.do_eval or inputs.held_out:
        size = settings.eval_batch_size
        distribution.check_batch_size(strategy, size, "eval_batch_size")
    # Without a manifest TensorFlow reads the records: make the strategy first.
    counts = count_records(
        inputs,
        settings.do_train,
        run.config.vocab_size,
        strategy,
    )

    # Last, because it writes the first files of the run.
    start.restore_or_initialize(trainer, run)
    pairs = zip(inputs.phases, counts)
    return trainer, [phase(run, inputs, *pair) for pair in pairs]


def build_network(run: Run[Settings], inputs: Inputs) -> keras.Model:
    """Builds the network.

    Args:
        run: Run. The run.
        inputs: Inputs. Its records.
    """
    network = networks.build_pretraining_model(
        run.config,
        run.settings.random_seed,
        packed=inputs.phases[0].records.is_packed,
    )

    # Without its objective this head would not be trained.
    if not run.settings.use_next_sentence:
        network.get_layer("bert").get_layer("pooler").trainable = False
        network.get_layer("seq_relationship").trainable = False
    return network


def objective_of(settings: Settings) -> Objective:
    """Returns the objective: losses and learning rate.

    Args:
        settings: Settings. Settings of the script.
    """
    count = len(losses.PRETRAINING) if settings.use_next_sentence else 1
    return Objective(
        losses.PRETRAINING[:count],
        schedule(settings),
        settings.num_train_steps,
        settings.num_warmup_steps,
        metric="loss",
        sign=-1,
    )


def evaluate(
    run: Run[Settings], inputs: Inputs, trainer: Trainer
) -> tuple[dict, dict]:
    """Scores the final weights; returns the metrics and a report."""
    counts = TargetCounts(run.config.vocab_size)
    metrics = trainer.evaluate(
        counts.watch(batches_to_evaluate(run.settings, inputs))
    )
    return metrics, {
        "task": "pretraining",
        "records": name_of(evaluated(inputs).files),
        "references": counts.baselines(),
    }


def schedule(
    settings: Settings,
) -> WarmupLinearDecay | WarmupStableDecay:
    """Learning-rate schedule of the flags."""
    peak, steps = settings.learning_rate, settings.num_train_steps
    warmup = settings.num_warmup_steps
    if settings.schedule == "linear":
        return WarmupLinearDecay(peak, steps, warmup)
    return WarmupStableDecay(peak, steps, warmup, settings.num_decay_steps)


def evaluated(inputs: Inputs) -> Records:
    """Records to evaluate: held-out, else the last training records."""
    return inputs.held_out or inputs.phases[-1].records


def batches_to_evaluate(settings: Settings, inputs: Inputs) -> tf.data.Dataset:
    """Batches of the records to evaluate."""
    records = evaluated(inputs)
    return reader.evaluation_batches(
        records.files,
        records.schema,
        settings.eval_batch_size,
        settings.max_eval_steps,
    )


def phase(
    run: Run[Settings], inputs: Inputs, part: PhaseInputs, num_records: int
) -> Phase:
    """Phase that trains on a part of the records.

    Args:
        run: Run. The run.
        inputs: Inputs. Its records.
        part: PhaseInputs. Records and steps of the phase.
        num_records: int. Number of its records.
    """
    files, seed = part.records.files, run.settings.random_seed

    def batches(step: int) -> tf.data.Dataset:
        if len(inputs.phases) > 1:
            log(
                f"steps {part.start_step + 1} to {part.end_step}: "
                f"{num_records} records of {part.records.max_seq_length} "
                f"tokens, batches of {part.batch_size}"
            )

        # Steps are counted within the phase, also when the run resumes.
        step, worker = step - part.start_step, workers.index_and_count()
        unmasked = reader.training_batches(
            files,
            num_records,
            part.records.schema,
            part.batch_size,
            seed,
            step,
            worker,
        )
        if part.masks is None:
            return unmasked

        # Masks depend on the step, so that a resumed run draws the same.
        assert run.tokenizer, "`read_masks` needs records with a manifest"
        vocab = masking.Vocabulary.of(run.tokenizer.vocab)
        return dynamic_masking.remask_batches(
            unmasked, part.masks, vocab, step, worker
        )

    def records_of(step: int) -> str:
        return reader.report_records(
            files, num_records, part.batch_size, seed, step - part.start_step
        )

    return Phase(part.end_step, part.batch_size, batches, records_of)
