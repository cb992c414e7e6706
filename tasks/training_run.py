"""A training run: devices, network, optimizer, steps and checkpoints.

Shared by pre-training and all fine-tuning tasks; a task provides its network
and its losses. A script imports this module once its flags are checked.
"""

import dataclasses
import os
from collections.abc import Callable, Iterable

from bert.common import flags
from bert.common.errors import UserError
from bert.common.progress import say
from bert.modeling import checkpoints, dropout, fused_ops, losses, precision
from bert.modeling.formats import model_folder
from bert.modeling.formats.model_folder import ModelFolder
from bert.tasks import run_folder, settings
from bert.training import distribution, optimization, plan, workers
from bert.training.loop import Schedule, Trainer, Validation
from bert.training.saver import Saver
from bert.training.steps import Steps, StepTask


@dataclasses.dataclass(frozen=True)
class TrainingTask:
    """Network and losses of a task.

    Attributes:
        build_model: () -> a model from `modeling.models` or `task_models`.
        objectives: names of the losses.
        batch_weights, batch_sums: see `training.steps`.
        measures: see `training.steps.StepTask`.
        records: JSON value that identifies the training data.
        labels: kind and names of the labels, as in `task.json`, or None.
        num_train_steps: number of training steps; 0: no training.
        num_warmup_steps: number of steps of linear warm-up.
    """

    build_model: Callable
    objectives: tuple[str, ...]
    batch_weights: Callable[[dict], dict]
    batch_sums: Callable[[dict, dict], dict]
    measures: tuple[str, ...] = ("loss", "accuracy")
    records: str = ""
    labels: dict | None = None
    num_train_steps: int = 0
    num_warmup_steps: int = 0


class TrainingRun:
    """Trains a network and keeps its checkpoints.

    Args:
        script_settings: all settings of the script.
        training: the training settings among them.
        folder: the folder of the run.
        task: the network and its losses.

    Attributes:
        strategy: the devices.
        use_xla: whether the step is compiled with XLA.
        model: the Keras model.
        named: original name -> variable.
        optimizer: the `training.optimization.AdamWeightDecay`.
        trainer: the `training.loop.Trainer`.
    """

    def __init__(
        self,
        script_settings,
        training: settings.Training,
        folder: run_folder.RunFolder,
        task: TrainingTask,
    ):
        self._training, self._folder, self._task = training, folder, task
        self._flags = list(flags.flags_of(type(script_settings)))
        self.strategy = distribution.make_strategy(
            **dataclasses.asdict(training.devices)
        )
        deterministic = distribution.set_determinism(
            self.strategy, training.deterministic
        )
        self._learning_rate = optimization.WarmupLinearDecay(
            training.learning_rate,
            max(1, task.num_train_steps),
            task.num_warmup_steps,
        )
        computed_in = precision.choose(training.precision, self.strategy)
        self.use_xla = distribution.use_xla(self.strategy, training.use_xla)
        say(distribution.describe(self.strategy, computed_in, self.use_xla))
        with self.strategy.scope():
            with precision.computing_in(computed_in):
                self.model = task.build_model()
            self.named = checkpoints.model_variables(self.model)
            self.optimizer = optimization.AdamWeightDecay(
                self._learning_rate, rule=training.optimizer
            )
            self.optimizer.build(self.model.trainable_variables)
        self._settings = {
            **flags.as_dict(script_settings),
            "use_xla": self.use_xla,
            **{
                name: getattr(folder.tokenizer, name, None)
                for name in ("do_lower_case", "strip_accents")
            },
            "records": task.records,
            **model_folder.hashes_of(
                folder.tokenizer and folder.tokenizer.tokens, task.labels
            ),
            "environment": {
                **distribution.environment(self.strategy),
                "dropout": dropout.VERSION,
            },
        }
        self.trainer = self._make_trainer(
            fused_ops.step_scope(
                folder.config, training.remat, self.use_xla, deterministic
            )
        )

    def _make_trainer(self, seed_scope: Callable) -> Trainer:
        """Makes the steps and what runs them."""
        training, folder, task = self._training, self._folder, self._task
        step_task = StepTask(
            self.model,
            task.objectives,
            task.batch_weights,
            task.batch_sums,
            seed_scope,
            losses.batch_tokens,
            task.measures,
        )
        steps = Steps(
            step_task,
            self.optimizer,
            self.strategy,
            training.random_seed,
            self.use_xla,
            training.gradient_accumulation_steps,
        )
        keep_max, best = training.keep_checkpoint_max, run_folder.BEST
        return Trainer(
            steps,
            self.named,
            Saver(folder.shared, keep_max, folder.is_chief),
            Saver(folder.below(best).shared, 1, folder.is_chief),
            folder.path,
            self._settings,
            training.steps_to_profile if folder.is_chief else None,
        )

    @property
    def step(self) -> int:
        """Number of steps taken."""
        return self.trainer.step

    def check_batch_size(self, flag: str, batch_size: int) -> None:
        """Checks that a batch divides evenly over the devices.

        Args:
            flag: name of the flag that sets it.
            batch_size: examples of the whole batch.

        Raises:
            UserError: it does not.
        """
        parts = 1
        if flag == "train_batch_size":
            parts = self._training.gradient_accumulation_steps
        distribution.check_batch_size(self.strategy, batch_size, flag, parts)

    def start(self, model: ModelFolder | None = None) -> bool:
        """Resumes the run in its folder, or starts from given weights.

        Then it writes the config, the vocabulary and the command.

        Args:
            model: the initial weights; None: --init_checkpoint.

        Returns:
            whether the weights are random.

        Raises:
            UserError: there are no weights to evaluate, they do not fit the
                config, or the run is past its last step.
        """
        training, fresh = self._training, False
        workers.check_settings(self.strategy, self._settings_of_all_workers())
        restored = self.trainer.resume(training.do_train)
        if restored and training.do_train:
            warn_of_changes(
                restored.settings,
                self._settings,
                [flag.name for flag in self._flags if flag.resume],
            )
        if not restored:
            fresh = self._initialize(model)
        if training.do_train:
            self._check_step()
        self._folder.write_inputs()
        return fresh

    def _settings_of_all_workers(self) -> dict:
        """What all workers must have; their paths may differ."""
        return {
            f"--{flag.name}": (
                self._settings[flag.name] is not None
                if flag.path
                else self._settings[flag.name]
            )
            for flag in self._flags
            if not flag.per_worker
        } | {"records": self._task.records}

    def _initialize(self, model: ModelFolder | None) -> bool:
        """Assigns the first weights; returns whether they are random."""
        training = self._training
        model = model or ModelFolder.open(training.model.init_checkpoint)
        if model.path in ("", training.output_dir):
            if training.do_train:
                return True
            raise UserError(
                "no checkpoint",
                path=training.output_dir,
                expected="a trained model",
                fix="pass --do_train or --init_checkpoint",
            )
        path = model.resolve()
        weights, _ = model.weights(training.resume_optimizer)
        required = checkpoints.ENCODER
        if training.do_train:
            weights = checkpoints.without_other_heads(weights, self.named)
        else:
            trained = (n for n, x in self.named.items() if x.trainable)
            required = (*required, *trained)
        fresh = checkpoints.assign(self.named, weights, path, required)
        fresh = f"fresh: {', '.join(fresh)}" if fresh else "all variables found"
        say(f"starting from {path}; {fresh}")
        if training.resume_optimizer:
            self.trainer.assign(weights, path, "omit --resume_optimizer")
        return False

    def _check_step(self) -> None:
        """Compares the step of the run with its last step."""
        folder, step = self._training.output_dir, self.step
        last = self._learning_rate.num_train_steps
        warmup = self._learning_rate.num_warmup_steps
        if step > last:
            raise UserError(
                f"the checkpoint is at step {step}",
                path=folder,
                expected=f"at most {last}, the last step",
                fix="train for more steps, or pass another --output_dir",
            )
        if step == last:
            say(f"finished: {folder} is at step {step} of {last}")
        elif warmup >= last:
            say(
                f"warning: {warmup} of {last} steps are warm-up: the learning "
                "rate never reaches its peak"
            )

    def validation(
        self, evaluate: Callable, metric: str, is_loss: bool = False
    ) -> Validation:
        """Makes the validation of the run."""
        patience = self._training.early_stopping_patience
        return Validation(evaluate, metric, is_loss, patience)

    def schedule(
        self, batches: Callable, batch_size: int, last: int, **named
    ) -> Schedule:
        """Makes the schedule up to the step `last`."""
        training = self._training
        return Schedule(
            batches,
            num_train_steps=last,
            log_steps=training.log_steps
            or min(100, max(1, self._task.num_train_steps // 50)),
            save_steps=training.save_checkpoints_steps,
            iterations_per_loop=training.iterations_per_loop,
            batch_size=batch_size,
            learning_rate=self._learning_rate,
            **named,
        )

    def train(
        self, schedules: list[Schedule], validation: Validation | None = None
    ) -> None:
        """Trains to the last step, or prints the plan of --plan.

        Args:
            schedules, validation: as for `Trainer.train`.

        Raises:
            SystemExit: the run was interrupted, and saved; or planned.
        """
        if self._training.plan:
            plan.report(self.trainer.steps, schedules)
            raise SystemExit
        self.trainer.train(schedules, validation, self._training.seconds)

    def checkpoint(self) -> str:
        """The prefix of the newest checkpoint."""
        return os.path.join(self._folder.shared, f"model.ckpt-{self.step}")


def warn_of_changes(before: dict, now: dict, decisive: Iterable[str]) -> None:
    """Warns if a run is resumed with changed settings.

    Args:
        before: settings in the checkpoint, which may lack flags.
        now: settings of this process.
        decisive: names of the flags that are marked `resume`.
    """
    changed = [
        f"--{name} was {before[name]}, is {now[name]}"
        for name in decisive
        if before.get(name, now[name]) != now[name]
    ]
    # Checkpoints of the first version of dropout do not name it.
    old = {"dropout": "version 1", **before["environment"]}
    new = now["environment"]
    changed += [
        f"{name} was {old[name]}, is {new.get(name)}"
        for name in old
        if old[name] != new.get(name)
    ]
    if before["records"] != now["records"]:
        changed.append("the records differ")
    if changed:
        say(
            f"warning: {'; '.join(changed)}: the run continues, but is no "
            "longer bit-reproducible, and may see other examples"
        )
