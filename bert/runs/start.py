"""Start of a run: its devices, network and first weights.

    choose_devices -> network -> build_trainer -> restore_or_initialize

Scripts import this module after their flags are checked.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import keras
import tensorflow as tf

from bert.common import flags
from bert.common.errors import UserError
from bert.common.progress import log
from bert.data.bucketing import BatchLengths
from bert.modeling import checkpoints, dropout, fused_ops, losses, precision
from bert.modeling.formats import checkpoint_files
from bert.modeling.formats.model_folder import ModelFolder
from bert.runs import written_files
from bert.tasks.run import Run, SettingsT
from bert.training import collectives, distribution, optimization
from bert.training.objective import Objective
from bert.training.saver import Saver
from bert.training.settings import Devices, Training
from bert.training.train_step import TrainStep
from bert.training.trainer import Trainer

# Effects of flags changed between runs, beyond losing bit-reproducibility.
_OTHER_EXAMPLES = "examples are skipped or repeated"
_EFFECTS = {
    "optimizer": "the moments are from another update rule",
    "phases": _OTHER_EXAMPLES,
    "random_seed": _OTHER_EXAMPLES,
    "records": _OTHER_EXAMPLES,
    "train_batch_size": _OTHER_EXAMPLES,
}
_SCHEDULE = {
    "learning_rate",
    "num_decay_steps",
    "num_train_steps",
    "num_warmup_steps",
    "schedule",
}


class ChosenDevices(NamedTuple):
    """The devices of this process, and how they compute.

    Attributes:
        strategy: tf.distribute.Strategy. The devices.
        precision: str. "float32", "tf32", "bfloat16" or "float16".
        use_xla: bool. Whether XLA compiles whole steps.
        deterministic: bool. Whether each run gives the same bits.
    """

    strategy: tf.distribute.Strategy
    precision: str
    use_xla: bool
    deterministic: bool

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Context in which new layers are on the devices, in the precision."""
        with self.strategy.scope(), precision.computing_in(self.precision):
            yield


def choose_devices(settings: Training) -> ChosenDevices:
    """Chooses the devices of this process, and prints them.

    Args:
        settings: Training. Settings of the script.

    Raises:
        UserError: the device does not exist.
    """
    strategy = distribution.make_strategy(**flags.as_dict(settings, of=Devices))
    deterministic = distribution.set_determinism(
        strategy, settings.deterministic
    )
    computed_in = distribution.choose_precision(strategy, settings.precision)
    use_xla = distribution.use_xla(strategy, settings.use_xla)
    log(distribution.describe(strategy, computed_in, use_xla))
    return ChosenDevices(strategy, computed_in, use_xla, deterministic)


def build_trainer(
    run: Run[SettingsT],
    devices: ChosenDevices,
    network: keras.Model,
    objective: Objective,
    data_digest: str,
    task_json: dict | None = None,
    layer_decay: float = 1.0,
    lengths: BatchLengths | None = None,
) -> Trainer:
    """Builds the optimizer and the training step of a network.

    Args:
        run: Run. The run.
        devices: ChosenDevices. The devices.
        network: keras.Model. The network, on these devices.
        objective: Objective. Losses and learning rate.
        data_digest: str. Number and hash of the training examples or records.
        task_json: dict or None. The `task.json` of the run. Default: None.
        layer_decay: float. Factor of a layer's learning rate relative to the
            layer above it. Default: 1.
        lengths: BatchLengths or None. Lengths that batches are padded to.
            Default: None, all records have the same.
    """
    settings, folder, tokenizer = run.settings, run.output_folder, run.tokenizer
    strategy = devices.strategy

    # The variables of the optimizer are on the strategy's devices, too.
    with strategy.scope():
        named = checkpoints.model_variables(network)
        optimizer = optimization.AdamWeightDecay(
            objective.schedule, rule=settings.optimizer
        )
        variables = network.trainable_variables
        optimizer.build(
            variables,
            checkpoints.rate_factors(
                named, variables, layer_decay, run.config.num_hidden_layers
            ),
        )

    train_step = TrainStep(
        network,
        objective,
        optimizer,
        strategy,
        seed=settings.random_seed,
        inside_step=fused_ops.step_scope(
            run.config,
            remat=settings.remat,
            compiled=devices.use_xla,
            deterministic=devices.deterministic,
            fused=lengths is None or lengths.may_fuse,
        ),
        batch_tokens=losses.batch_tokens,
        use_xla=devices.use_xla,
        accumulation_steps=settings.gradient_accumulation_steps,
    )

    # Recorded in each checkpoint, and compared when a run is resumed.
    description = {
        **settings.described,
        "use_xla": devices.use_xla,
        "do_lower_case": getattr(tokenizer, "do_lower_case", None),
        "strip_accents": getattr(tokenizer, "strip_accents", None),
        "records": data_digest,
        "lengths": (*lengths.allowed,) if lengths else (),
        **checkpoint_files.hashes_of(
            tokenizer.tokens if tokenizer else None, task_json
        ),
        "environment": {
            **distribution.environment(strategy),
            "dropout": dropout.VERSION,
        },
    }

    best = os.path.join(folder.shared, checkpoint_files.BEST)
    return Trainer(
        settings,
        train_step,
        named,
        Saver(folder.shared, settings.keep_checkpoint_max, folder.is_chief),
        Saver(best, 1, folder.is_chief),
        folder.path,
        description,
    )


def restore_or_initialize(trainer: Trainer, run: Run[SettingsT]) -> list[str]:
    """Resumes a run in its folder, or starts it from the initial weights.

    Then it writes the config, the vocabulary and the command.

    Args:
        trainer: Trainer. Result of `build_trainer`.
        run: Run. The run.

    Returns:
        Names of the variables with random weights.

    Raises:
        UserError: weights to evaluate are missing, weights do not fit the
            config, or the run is past its last step.
    """
    declared = list(flags.flags_of(type(trainer.settings)))
    # All workers must have the same settings, but their paths may differ.
    shared = {
        f"--{flag.name}": (
            trainer.description[flag.name] is not None
            if flag.path
            else trainer.description[flag.name]
        )
        for flag in declared
        if not flag.per_worker
    }
    shared["records"] = trainer.description["records"]
    collectives.check_settings(trainer.train_step.strategy, shared)

    # A checkpoint in the folder has priority over the initial weights.
    restored = trainer.restore()
    if restored and trainer.settings.do_train:
        decisive = [flag.name for flag in declared if flag.resume]
        rates = (
            restored.state.get("trainer", {}).get("learning_rate"),
            float(trainer.objective.schedule(trainer.step)),
        )
        warn_of_changes(restored.settings, trainer.description, decisive, rates)
    fresh = [] if restored else initialize(trainer, run.model)

    # The files are written last, once no check can fail.
    if trainer.settings.do_train:
        check_step(trainer)
    written_files.write_inputs(run.output_folder, run.config, run.tokenizer)
    return fresh


def initialize(trainer: Trainer, model: ModelFolder) -> list[str]:
    """Assigns the first weights.

    Args:
        trainer: Trainer. Result of `build_trainer`.
        model: ModelFolder. Initial weights.

    Returns:
        Names of the variables with random weights.

    Raises:
        UserError: weights to evaluate are missing, or weights do not fit the
            config.
    """
    settings, trains = trainer.settings, trainer.settings.do_train
    if model.path in ("", settings.output_dir):
        if trains:
            return [*trainer.named]
        raise UserError(
            "no checkpoint",
            path=settings.output_dir,
            expected="a trained model",
            fix="pass --do_train or --init_checkpoint",
        )

    model = model.last() if settings.resume_optimizer else model
    path = model.resolve()
    weights, _ = model.weights(settings.resume_optimizer)

    # Training may start with a random head, an evaluation may not.
    required = checkpoints.ENCODER
    if trains:
        weights = checkpoints.without_other_heads(weights, trainer.named)
    else:
        trained = (n for n, x in trainer.named.items() if x.trainable)
        required = (*required, *trained)
    fresh = checkpoints.assign(trainer.named, weights, path, required)

    # Log random variables, which reveal a wrong checkpoint.
    shown = f"fresh: {', '.join(fresh)}" if fresh else "all variables found"
    log(f"starting from {path}; {shown}")
    if settings.resume_optimizer:
        trainer.assign(weights, path, "omit --resume_optimizer")
    return fresh


def check_step(trainer: Trainer) -> None:
    """Compares the step of a run with its last step.

    Args:
        trainer: Trainer. Trainer of the run.

    Raises:
        UserError: the run is past its last step.
    """
    path, step = trainer.settings.output_dir, trainer.step
    last = trainer.objective.num_steps
    warmup = trainer.objective.num_warmup_steps
    if step > last:
        raise UserError(
            f"the checkpoint is at step {step}",
            path=path,
            expected=f"at most {last}, the last step",
            fix="train for more steps, or pass another --output_dir",
        )

    # Not an error: the same command may still evaluate and export.
    if step == last:
        log(f"finished: {path} is at step {step} of {last}")
    elif warmup >= last:
        log(
            f"warning: {warmup} of {last} steps are warm-up: the learning "
            "rate never reaches its peak"
        )


def warn_of_changes(
    before: dict,
    now: dict,
    decisive: Iterable[str],
    rates: tuple[float | None, float],
) -> None:
    """Warns if a run is resumed with changed settings, and of the effects.

    Args:
        before: dict. Settings in the checkpoint, which may lack flags.
        now: dict. Settings of this process.
        decisive: names of the flags that are marked `resume`.
        rates: tuple. Learning rate of the next step with the old settings
            (None if unknown) and with the new settings.
    """
    if "optimizer" in before:
        rule = optimization.current_rule(before["optimizer"])
        before = {**before, "optimizer": rule}
    changed = {
        name: f"--{name} was {_shown(before[name])}, is {_shown(now[name])}"
        for name in decisive
        if before.get(name, now[name]) != now[name]
    }
    # Checkpoints with the first version of dropout do not record it.
    old = {"dropout": "version 1", **before["environment"]}
    new = now["environment"]
    changed |= {
        name: f"{name} was {old[name]}, is {new.get(name)}"
        for name in old
        if old[name] != new.get(name)
    }
    if before["records"] != now["records"]:
        changed["records"] = "the records differ"

    # Earlier versions did not record the lengths, and had others without XLA.
    is_other = before.get("length_buckets") and not before.get("use_xla")
    was = before.get("lengths", ("others",) if is_other else ())
    are = now.get("lengths", ())
    if was and are and was != are:
        changed["lengths"] = "batches are padded to other lengths"
    if not changed:
        return

    effects = [_EFFECTS[name] for name in changed if name in _EFFECTS]
    if rates[0] not in (None, rates[1]):
        effects.append(
            f"the learning rate of the next step was {rates[0]:.3g}, is "
            f"{rates[1]:.3g}"
        )
    # If the rate is unchanged, results equal a run started with these flags.
    if effects or rates[0] is None or not _SCHEDULE.issuperset(changed):
        effects.append("it is no longer bit-reproducible")
    else:
        effects.append("the learning rate of the next step is the same")
    log(
        f"warning: {'; '.join(changed.values())}: the run continues: "
        f"{', '.join(dict.fromkeys(effects))}"
    )


def _shown(value: object) -> str:
    """Formats the value of a flag as on the command line."""
    if value is None or value == ():
        return "not given"
    return ",".join(value) if isinstance(value, tuple) else str(value)
