"""A training run: devices, network, optimizer, steps and checkpoints.

Shared by pre-training and all fine-tuning tasks; a task provides its network
and its losses.
"""

import dataclasses
import os
from collections.abc import Callable

from common import flags
from common.errors import UserError
from common.progress import say
from modeling.config import BertConfig
from tasks import output_dir, settings


@dataclasses.dataclass(frozen=True)
class TrainingTask:
    """Network and losses of a task.

    Attributes:
        build_model: () -> a model from `modeling.models` or `task_models`.
        objectives: names of the losses.
        batch_weights, batch_sums: see `training.steps`.
        measures: see `training.steps.StepTask`.
        records: JSON value that identifies the training data.
        casing: of the training data, if no flags have it.
        num_train_steps: number of training steps; 0: no training.
        num_warmup_steps: number of steps of linear warm-up.
    """

    build_model: Callable
    objectives: tuple[str, ...]
    batch_weights: Callable[[dict], dict]
    batch_sums: Callable[[dict, dict], dict]
    measures: tuple[str, ...] = ("loss", "accuracy")
    records: str = ""
    casing: dict = dataclasses.field(default_factory=dict)
    num_train_steps: int = 0
    num_warmup_steps: int = 0


class TrainingRun:
    """Trains a network and keeps its checkpoints.

    Args:
        everything: all settings of the script; those marked `resume` are
            compared when the run resumes.
        training: the training settings among them.
        config: sizes of the network.
        task: the network and its losses.

    Attributes:
        strategy: the devices.
        use_xla: whether the step is compiled with XLA.
        model: the Keras model.
        named: original name -> variable.
        learning_rate: step -> learning rate.
        optimizer: the `training.optimization.AdamWeightDecay`.
        trainer: the `training.loop.Trainer`.
    """

    def __init__(
        self,
        everything,
        training: settings.Training,
        config: BertConfig,
        task: TrainingTask,
    ):
        from modeling import checkpoints, precision
        from training import distribution, optimization

        self._training, self._config, self._task = training, config, task
        self.strategy = distribution.make_strategy(
            **dataclasses.asdict(training.devices)
        )
        self._deterministic = distribution.set_determinism(
            self.strategy, training.deterministic
        )
        self.learning_rate = optimization.WarmupLinearDecay(
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
                self.learning_rate, rule=training.optimizer
            )
            self.optimizer.build(self.model.trainable_variables)
        self._make_trainer(everything)

    def _make_trainer(self, everything) -> None:
        """Makes the trainer, and the settings that are compared."""
        from modeling import dropout, fused_ops, losses
        from training import distribution, loop, saver, steps

        training, task = self._training, self._task
        values = {**flags.as_dict(everything), "use_xla": self.use_xla}
        self._decisive = flags.as_dict(everything, "resume")
        paths = flags.as_dict(everything, "path")  # workers may have their own
        own = {"train_for", "cluster_timeout", "distribution"}
        own |= flags.as_dict(everything, "chief").keys()
        self._of_all_workers = {
            f"--{name}": value if name not in paths else value is not None
            for name, value in values.items()
            if name not in own
        }
        self._of_all_workers["records"] = task.records
        self._settings = {
            **values,
            **task.casing,
            "records": task.records,
            "environment": {
                **distribution.environment(self.strategy),
                "dropout": dropout.VERSION,
            },
        }
        step_task = steps.StepTask(
            self.model,
            task.objectives,
            task.batch_weights,
            task.batch_sums,
            fused_ops.step_scope(
                self._config,
                training.remat,
                self.use_xla,
                self._deterministic,
            ),
            losses.batch_tokens,
            task.measures,
        )
        newest = saver.Saver(training.output_dir, training.keep_checkpoint_max)
        best = os.path.join(training.output_dir, output_dir.BEST)
        self.trainer = loop.Trainer(
            steps.Steps(
                step_task,
                self.optimizer,
                self.strategy,
                training.random_seed,
                self.use_xla,
                training.gradient_accumulation_steps,
            ),
            self.named,
            newest,
            saver.Saver(best, 1),
            training.output_dir,
            self._settings,
            training.steps_to_profile,
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
        from training import distribution

        parts = 1
        if flag == "train_batch_size":
            parts = self._training.gradient_accumulation_steps
        distribution.check_batch_size(self.strategy, batch_size, flag, parts)

    def start(self, weights: dict | None = None, path: str = "") -> bool:
        """Resumes the run in output_dir, or starts from given weights.

        Args:
            weights: original name -> array, instead of --init_checkpoint.
            path: of the weights, for messages.

        Returns:
            whether the weights are random.

        Raises:
            UserError: there are no weights to evaluate, or they do not fit
                the config.
        """
        from modeling import checkpoints
        from training import workers

        training = self._training
        workers.check_settings(self.strategy, self._of_all_workers)
        restored = self.trainer.resume(training.do_train)
        if restored:
            if training.do_train:
                output_dir.warn_of_changes(
                    restored.settings, self._settings, self._decisive
                )
            return False
        if weights is None and training.model.init_checkpoint:
            path = checkpoints.resolve(training.model.init_checkpoint)
            weights = checkpoints.read(path, training.resume_optimizer)
        if weights is None:
            if training.do_train:
                return True
            raise UserError(
                "no checkpoint",
                path=training.output_dir,
                expected="a trained model",
                fix="pass --do_train or --init_checkpoint",
            )
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

    def validation(
        self, evaluate: Callable, metric: str, is_loss: bool = False
    ):
        """Makes the `loop.Validation` of the run."""
        from training import loop

        patience = self._training.early_stopping_patience
        return loop.Validation(evaluate, metric, is_loss, patience)

    def schedule(self, batches: Callable, batch_size: int, last: int, **named):
        """Makes the `loop.Schedule` up to the step `last`."""
        from training import loop

        training = self._training
        return loop.Schedule(
            batches,
            num_train_steps=last,
            log_steps=training.log_steps
            or min(100, max(1, self._task.num_train_steps // 50)),
            save_steps=training.save_checkpoints_steps,
            iterations_per_loop=training.iterations_per_loop,
            batch_size=batch_size,
            learning_rate=self.learning_rate,
            **named,
        )

    def checkpoint(self) -> str:
        """The prefix of the newest checkpoint."""
        return os.path.join(
            self._training.output_dir, f"model.ckpt-{self.step}"
        )
