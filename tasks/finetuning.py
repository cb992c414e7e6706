"""What run_classifier, run_squad, run_ner and run_swag share: a task's run.

    flags -> check -> FineTuning -> start -> train -> predict

It is wiring, and knows no task: a script hands it a model and its losses.
"""

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator

from absl import flags

from common.errors import UserError
from common.progress import Progress, say
from data import features
from data.text import vocabulary, vocabulary_checks
from modeling.config import BertConfig
from modeling.formats import model_folder
from tasks import common_flags, output_dir, text_flags, training_flags

_WINDOW = 64  # batches of predictions that are sorted together


def define_flags(values: flags.FlagValues, required: bool = True) -> None:
    """Defines the flags of every fine-tuning script.

    Args:
        values: gets the flags.
        required: config and vocabulary come from nowhere else.
    """
    training_flags.define_training(values, required)
    text_flags.define_text(values, required)
    for name, default, meaning in (
        ("do_eval", False, "Evaluate on labelled examples."),
        ("do_predict", False, "Write predictions."),
        ("length_buckets", True, "Pad to a few lengths, not all to one."),
    ):
        flags.DEFINE_bool(name, default, meaning, flag_values=values)
    for name, default, lowest, meaning in (
        ("max_seq_length", 128, 3, "Pieces in a row at most."),
        ("predict_batch_size", 8, 1, "Rows of a batch in prediction."),
        (
            "freeze_layers",
            0,
            0,
            "Embeddings and so many layers stay as they are; 0: all learn.",
        ),
    ):
        flags.DEFINE_integer(
            name, default, meaning, flag_values=values, lower_bound=lowest
        )
    for name, default, meaning in (
        ("num_train_epochs", 3.0, "How often each example is seen."),
        ("warmup_proportion", 0.1, "Share of the steps that warm up."),
        (
            "layer_decay",
            1.0,
            "Each layer learns at this share of the rate of the one above.",
        ),
    ):
        flags.DEFINE_float(
            name, default, meaning, flag_values=values, lower_bound=0.0
        )


@dataclasses.dataclass(frozen=True)
class Setup:
    """What every task needs, checked.

    Attributes:
        config: sizes of the network.
        vocab: token -> id.
        lengths: S of the batches, ascending.
    """

    config: BertConfig
    vocab: dict[str, int]
    lengths: list[int]


def check(values: flags.FlagValues, config: BertConfig | None = None) -> Setup:
    """Checks the flags of `define_flags` against each other and the files.

    Args:
        values: the flags.
        config: instead of --bert_config_file.

    Raises:
        UserError: they do not go together.
    """
    from data import batching

    where = "the module" if config else values.bert_config_file
    config = config or BertConfig.from_json_file(values.bert_config_file)
    vocab = vocabulary.read_vocabulary(values.vocab_file)
    config.check_vocabulary(vocab, values.vocab_file, where)
    if values.export_dir:
        vocabulary_checks.check_exportable(values.vocab_file, vocab)
    config.check_length(values.max_seq_length, "max_seq_length", where)
    if not 0 <= values.warmup_proportion <= 1:
        raise UserError(
            f"--warmup_proportion={values.warmup_proportion}",
            expected="a share from 0 to 1",
        )
    if not 0 < values.layer_decay <= 1:
        raise UserError(
            f"--layer_decay={values.layer_decay}",
            expected="a share above 0, up to 1",
        )
    if values.freeze_layers > config.num_hidden_layers:
        raise UserError(
            f"--freeze_layers={values.freeze_layers}",
            expected=f"at most num_hidden_layers, {config.num_hidden_layers} "
            f"({where})",
        )
    training_flags.check(values, [values.train_batch_size])
    training_flags.seconds(values.train_for)
    if values.early_stopping_patience and not values.eval_steps:
        raise UserError(
            f"--early_stopping_patience={values.early_stopping_patience}",
            expected="--eval_steps, after which evaluations come",
        )
    if values.init_checkpoint:
        model_folder.check_casing(
            values.do_lower_case, values.strip_accents, values.init_checkpoint
        )
        output_dir.check_beside(values.init_checkpoint, values.vocab_file)
    output_dir.check(values.output_dir, config)
    output_dir.check_vocabulary(values.output_dir, values.vocab_file)
    lengths = [values.max_seq_length]
    if values.length_buckets:
        lengths = batching.bucket_lengths(values.max_seq_length)
    return Setup(config, vocab, lengths)


@dataclasses.dataclass(frozen=True)
class Task:
    """What a script hands over.

    Attributes:
        build_model: () -> a model of `modeling.task_models`.
        objectives: names of the losses.
        batch_weights, batch_sums: see `training.steps`.
        num_rows: of training; 0 if there is none.
        choices: sequences of a row.
        measures: see `training.steps.Task`.
    """

    build_model: Callable
    objectives: tuple[str, ...]
    batch_weights: Callable[[dict], dict]
    batch_sums: Callable[[dict, dict], dict]
    num_rows: int = 0
    choices: int = 1
    measures: tuple[str, ...] = ("loss", "accuracy")


class FineTuning:
    """A run of a task.

    Args:
        values: flags of `define_flags`.
        setup: from `check`.
        task: what is trained.

    Attributes:
        model: the Keras model.
        num_train_steps: as the original counts: rows / batch * epochs.
    """

    def __init__(self, values: flags.FlagValues, setup: Setup, task: Task):
        from modeling import checkpoints, layer_decay
        from training import distribution, optimization, precision, saver

        self._values, self._setup, self._task = values, setup, task
        self._strategy = distribution.make_strategy(
            **{name: values[name].value for name in common_flags.DEVICE_FLAGS}
        )
        if values.do_train:
            distribution.check_batch_size(
                self._strategy,
                values.train_batch_size,
                "train_batch_size",
                values.gradient_accumulation_steps,
            )
        self.num_train_steps = int(
            task.num_rows / values.train_batch_size * values.num_train_epochs
        )
        self._learning_rate = optimization.WarmupLinearDecay(
            values.learning_rate,
            max(1, self.num_train_steps),
            int(self.num_train_steps * values.warmup_proportion),
        )
        computed_in = precision.choose(values.precision, self._strategy)
        with self._strategy.scope():
            with precision.computing_in(computed_in):
                self.model = task.build_model()
            self._named = checkpoints.model_variables(self.model)
            layer_decay.freeze(self._named, values.freeze_layers)
            optimizer = optimization.AdamWeightDecay(
                self._learning_rate, rule=values.optimizer
            )
            optimizer.build(self.model.trainable_variables)
        optimizer.rate_factors = layer_decay.rate_factors(
            self._named,
            self.model.trainable_variables,
            values.layer_decay,
            setup.config.num_hidden_layers,
        )
        self._best = saver.Saver(
            os.path.join(values.output_dir, output_dir.BEST), 1
        )
        self._make_session(optimizer)
        self._predictors = {}

    def _make_session(self, optimizer) -> None:
        """Makes what trains, and what it keeps."""
        from modeling import counts, fused_ops
        from training import loop, saver, session, state, steps

        values, task = self._values, self._task
        self._state = state.TrainingState(
            self._named,
            optimizer,
            saver.Saver(values.output_dir, values.keep_checkpoint_max),
        )
        trained = steps.Task(
            self.model,
            task.objectives,
            task.batch_weights,
            task.batch_sums,
            fused_ops.step_scope(
                self._setup.config, **training_flags.ways(values)
            ),
            counts.batch_tokens,
            task.measures,
        )
        trainer = loop.Trainer(
            steps.Steps(
                trained,
                optimizer,
                self._strategy,
                values.random_seed,
                values.use_xla,
                values.gradient_accumulation_steps,
            )
        )
        self._settings = {
            **values.flag_values_dict(),
            "records": f"{task.num_rows} examples",
            "environment": state.environment(self._strategy),
        }
        self._session = session.Session(
            trainer,
            self._state,
            self._best,
            values.output_dir,
            self._settings,
        )

    @property
    def step(self) -> int:
        """Steps that were taken."""
        return self._state.step

    def start(self, weights: dict | None = None, path: str = "") -> None:
        """Takes up the run in output_dir, or starts from given weights.

        Args:
            weights: original name -> array, instead of --init_checkpoint.
            path: where they come from, for messages.

        Raises:
            UserError: there is nothing to start from, or it does not fit.
        """
        from modeling import checkpoints

        values = self._values
        output_dir.check_workers(self._strategy, self._settings)
        restored = self._session.resume(values.do_train)
        if restored:
            if values.do_train:
                output_dir.tell_changes(restored.settings, self._settings)
            return
        if weights is None and values.init_checkpoint:
            path = checkpoints.resolve(values.init_checkpoint)
            weights = checkpoints.read(path)
        if weights is None:
            if values.do_train:
                say("warning: no --init_checkpoint: training random weights")
                return
            raise output_dir.no_checkpoint(values.output_dir)
        required = checkpoints.ENCODER
        if not values.do_train:
            required = tuple(self._named)
        else:
            weights = self._without_other_heads(weights)
        fresh = checkpoints.assign(self._named, weights, path, required)
        output_dir.tell_start(path, fresh)

    def _without_other_heads(self, weights: dict) -> dict:
        """Weights without those of a head for other labels."""
        from modeling import checkpoints

        return {
            name: value
            for name, value in weights.items()
            if name.startswith(checkpoints.ENCODER)
            or name not in self._named
            or tuple(self._named[name].shape) == value.shape
        }

    def train(
        self,
        rows,
        evaluate: Callable[[], dict[str, float]] | None = None,
        best_metric: str | None = None,
    ) -> str:
        """Trains to the last step.

        Args:
            rows: `data.records.example_files.Rows`.
            evaluate: metrics of the present weights; called every
                --eval_steps and at the end.
            best_metric: the checkpoint with the highest value of this one is
                kept in output_dir/best.

        Returns:
            the prefix of the last checkpoint.
        """
        from data import length_batches
        from training import loop

        values, last = self._values, self.num_train_steps
        if not last:
            raise UserError(
                f"{self._task.num_rows} examples, "
                f"--train_batch_size={values.train_batch_size}, "
                f"--num_train_epochs={values.num_train_epochs}",
                expected="enough for one step",
            )
        output_dir.check_steps(
            values.output_dir, self.step, self._learning_rate
        )

        def batches():
            return length_batches.training_batches(
                rows,
                self._setup.lengths,
                values.train_batch_size,
                values.random_seed,
                self.step,
            )

        schedule = loop.Schedule(
            num_train_steps=last,
            log_steps=values.log_steps,
            save_steps=values.save_checkpoints_steps,
            eval_steps=values.eval_steps,
            iterations_per_loop=values.iterations_per_loop,
            batch_size=values.train_batch_size,
            learning_rate=self._learning_rate,
            skip_steps=training_flags.step_ranges(values.skip_steps),
            records_of=lambda step: length_batches.tell_rows(
                rows, values.train_batch_size, values.random_seed, step
            ),
        )
        self._session.train(
            [(batches, schedule)],
            self._held_out(evaluate, best_metric),
            training_flags.seconds(values.train_for),
        )
        return os.path.join(values.output_dir, f"model.ckpt-{self.step}")

    def _held_out(self, evaluate, best_metric):
        """Evaluates while training, if there is something to evaluate."""
        from training import validation

        patience = self._values.early_stopping_patience
        if patience and not (evaluate and best_metric):
            raise UserError(
                f"--early_stopping_patience={patience}",
                expected="--do_eval with labelled examples",
            )
        if evaluate is None:
            return None

        def tell(step, metrics):
            shown = " | ".join(f"{k} {v:.4f}" for k, v in metrics.items())
            say(f"step {step} held out | {shown}")

        best = best_metric and validation.Best(
            self._best,
            self._named,
            best_metric,
            patience=patience,
        )
        return validation.HeldOut(evaluate, tell, best)

    def take_best(self) -> int:
        """Takes the best weights, if there are such; returns their step."""
        values = self._values
        if not values.eval_steps and values.do_train:
            return self.step
        found = self._best.restore_latest()
        if found is None:
            return self.step
        for name, variable in self._named.items():
            variable.assign(found.values[name])
        say(f"using the best checkpoint, of step {found.step}")
        return found.step

    def weights(self) -> dict:
        """Original name -> array of all present weights."""
        return {name: value.numpy() for name, value in self._named.items()}

    def predict(
        self,
        rows: Iterable[dict],
        batch_size: int,
        what: str,
        total: int,
    ) -> Iterator[dict]:
        """Runs the model on rows, in batches of like lengths.

        Args:
            rows: as `data.records.example_files` has them, read on demand.
            batch_size: rows of a batch, over all devices.
            what: is done, for the lines of progress.
            total: number of rows, for the time left.

        Yields:
            the model's outputs for each row, in the order of the rows;
            outputs [B, S] are as long as the row.
        """
        import numpy as np

        from data import batching
        from data.records import example_files
        from training import prediction

        if batch_size not in self._predictors:
            self._predictors[batch_size] = prediction.Predictor(
                self.model, self._strategy, batch_size
            )
        predictor = self._predictors[batch_size]
        choices = self._task.choices
        progress, done = Progress(what, total, "examples"), 0

        def pad(some, length):
            padded = example_files.Rows(some, {}, choices)
            return padded.batch(np.arange(len(some)), length)

        def run(batch):
            nonlocal done
            outputs = predictor(batch)
            found = next(iter(outputs.values()))
            done += len(found)
            progress.update(done)
            return [
                {name: value[i] for name, value in outputs.items()}
                for i in range(len(found))
            ]

        def length_of(row):
            ids = row[features.INPUT_IDS]
            return len(ids) if choices == 1 else max(map(len, ids))

        return batching.in_order(
            rows,
            run,
            self._setup.lengths,
            batch_size,
            _WINDOW * batch_size,
            pad,
            length_of,
        )
