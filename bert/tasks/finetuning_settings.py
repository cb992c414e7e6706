"""Settings that the fine-tuning scripts share."""

import dataclasses
from collections.abc import Iterator
from typing import Self, TypeVar

from bert.common import flags, outputs, storage
from bert.common.errors import UserError
from bert.common.flags import (
    DATA,
    OUTPUT,
    RARE,
    REQUIRED,
    TRAINING,
    BaseSettings,
    changed,
    flag,
)
from bert.common.formats.json_files import Json
from bert.common.rules import excludes, needs, rule
from bert.data.text import vocabulary_checks
from bert.modeling.engines import openvino_engine
from bert.modeling.formats.model_card import CardFlags, Scores
from bert.modeling.formats.model_folder import ModelFiles, ModelFolder
from bert.training.settings import Training

# Reason of a rule.
HELD_OUT = ": a held-out fold must not select or tune its own model"


def _check_work(settings: "FineTuning") -> None:
    """Raises a UserError if the run has nothing to do."""
    if not (settings.needed_files or settings.export_dir):
        raise UserError(
            "nothing to do",
            fix="pass --do_train, --do_eval, --do_predict or --export_dir",
        )


def _check_files(settings: "FineTuning") -> Iterator[UserError]:
    """Yields an error for each missing flag of a file that the run reads."""
    for name in settings.file_flags:
        if not getattr(settings, name):
            fix = settings.eval_fix if name == "eval_file" else "name the file"
            yield UserError(f"no --{name}", fix=fix)


def _check_openvino(settings: "FineTuning") -> None:
    """Raises a UserError if the OpenVINO network cannot be made."""
    openvino_engine.check(
        settings.export_openvino,
        "--export_openvino",
        settings.do_train or settings.evaluates,
    )


def _check_micro_batches(settings: "FineTuning") -> None:
    """Raises a UserError if a batch does not divide into micro-batches."""
    one = (settings.train_batch_size,)
    for size in dict(settings.grid).get("train_batch_size", one):
        settings.check_micro_batches(size)


def _check_export_dir(settings: "FineTuning") -> None:
    """Raises a UserError if the files of a run and an export would mix."""
    run, export = settings.output_dir, settings.export_dir
    if export and storage.is_inside(export, run):
        raise UserError(
            f"--export_dir={export} and --output_dir={run}",
            expected="an export outside the folder of the run",
            fix="pass another --export_dir",
        )


def _check_folds(number: int) -> None:
    """Raises a UserError for a single fold."""
    if number == 1:
        raise UserError("--num_folds=1", expected="at least 2")


def _check_runs(settings: "SweepFlags") -> Iterator[UserError]:
    """Yields errors for flags that do not apply to several runs."""
    varied = {name: ",".join(map(str, x)) for name, x in settings.grid}
    if settings.num_seeds > 1:
        varied["num_seeds"] = str(settings.num_seeds)
    if settings.num_folds:
        varied["num_folds"] = str(settings.num_folds)
    if not varied:
        return

    # Folds have one seed, and one value of each flag.
    if settings.num_folds and len(varied) > 1:
        shown = " and ".join(f"--{name}={x}" for name, x in varied.items())
        yield UserError(shown, expected="one of them")
    first, value = next(iter(varied.items()))
    if not (settings.do_train and getattr(settings, "do_eval", False)):
        yield UserError(
            f"--{first}={value}", expected="--do_train and --do_eval too"
        )
    if settings.max_time:
        yield UserError(f"--{first} and --max_time", expected="one of them")
    for name, values in settings.grid:
        if len(set(values)) < len(values):
            yield UserError(
                f"--{name}={varied[name]}", expected="each value once"
            )


@dataclasses.dataclass(frozen=True)
class SweepFlags(Training):
    """Flags of several runs, see `runs.sweep`.

    Attributes:
        fold: int. Number of the held-out fold of this run, from 1. 0 holds out
            no fold.
        sweep_dir: str. Folder of all runs; "" for a single run.
        first_seed: int or None. --random_seed of the command that trains
            several runs. Default: None, a single run.
        scores: Scores or None. Scores to export with a run that is not
            evaluated.
    """

    RULES = [
        rule(
            "Several runs need --do_train and --do_eval.",
            _check_runs,
            "num_seeds=3",
        ),
        excludes("num_folds", "eval_steps", reason=HELD_OUT),
    ]
    topic = TRAINING

    train_batch_size: int = changed(
        Training,
        "train_batch_size",
        several=True,
        help="Batch size, over all devices. A comma-separated list, such as "
        "16,32, trains one run per value.",
    )
    learning_rate: float = changed(
        Training,
        "learning_rate",
        several=True,
        help="Peak learning rate. A comma-separated list, such as "
        "5e-5,3e-5,2e-5, trains one run per value.",
    )
    num_seeds: int = flag(
        1,
        "Number of runs, or of runs for each of several values of other "
        "flags. They have consecutive seeds from --random_seed on, and the "
        "results are their means.",
        at_least=1,
    )
    num_folds: int = flag(
        0,
        "Number of cross-validation folds of the training file. 0 disables.",
        at_least=0,
        parse=_check_folds,
    )
    fold: int = dataclasses.field(default=0, kw_only=True)
    sweep_dir: str = dataclasses.field(default="", kw_only=True)
    first_seed: int | None = dataclasses.field(default=None, kw_only=True)
    scores: Scores | None = dataclasses.field(default=None, kw_only=True)

    @property
    def split_seed(self) -> int:
        """Seed that divides the training file, the same for all runs."""
        seed = self.first_seed
        return self.random_seed if seed is None else seed

    @property
    def described(self) -> dict[str, Json]:
        """Settings that a checkpoint records: the flags, and `split_seed`."""
        return {**flags.as_dict(self), "split_seed": self.split_seed}

    @property
    def is_several(self) -> bool:
        """Whether the command trains several runs."""
        is_divided = self.num_folds > 0 and not self.fold
        return self.num_seeds > 1 or bool(self.grid) or is_divided

    @property
    def divides(self) -> bool:
        """Whether rows of the training file are held out for evaluation."""
        return bool(self.fold)

    @property
    def division(self) -> str:
        """Describes the training rows of a fold; "" for all rows."""
        fold = f"fold {self.fold} of {self.num_folds}, {self.random_seed}"
        return fold if self.fold else ""


@dataclasses.dataclass(frozen=True)
class TeacherFlags(BaseSettings):
    """The teacher of a student, for the tasks that can learn from one."""

    RULES = [needs("teacher", "do_train")]
    topic = TRAINING

    teacher: str | None = flag(
        None,
        "Model whose outputs the trained model learns (distillation): a run, "
        "an export, a folder of transformers, or hf://name.",
        path=True,
    )


@dataclasses.dataclass(frozen=True)
class FineTuning(SweepFlags, ModelFiles, CardFlags):
    """Shared settings of the fine-tuning scripts."""

    RULES = [
        rule("A run trains, evaluates, predicts or exports.", _check_work),
        rule("Each file that is read has a flag.", _check_files, "do_train"),
        needs("export_openvino", "export_dir"),
        rule(
            "--export_dir is outside --output_dir.",
            _check_export_dir,
            "output_dir=run",
            "export_dir=run",
        ),
        rule(
            "--export_openvino=int8 needs texts.",
            _check_openvino,
            "export_openvino=int8",
            "export_dir",
        ),
        rule(
            "--gradient_accumulation_steps divides the batch size.",
            _check_micro_batches,
            "gradient_accumulation_steps=7",
            "train_batch_size=8",
            "do_train",
        ),
        needs("early_stopping_patience", "eval_steps"),
        needs("keep_layers", "init_checkpoint"),
    ]
    topic = TRAINING
    eval_fix = "name the file"  # if --eval_file is missing

    vocab_file: str | None = changed(
        ModelFiles,
        "vocab_file",
        topic=REQUIRED,
        help="Vocabulary, one token per line. Default: vocab.txt beside "
        "--init_checkpoint.",
    )
    do_eval: bool = flag(False, "Evaluate on labelled examples.")
    do_predict: bool = flag(False, "Write predictions.", topic=OUTPUT)
    length_buckets: bool = flag(
        True,
        "Pad batches to one of a few lengths instead of --max_seq_length.",
        resume=True,
        topic=RARE,
    )
    max_seq_length: int = flag(
        128,
        "Maximum number of tokens of a sequence. If not given, a fine-tuned "
        "model keeps its recorded value.",
        at_least=3,
        resume=True,
        recorded=True,
        topic=DATA,
    )
    predict_batch_size: int = flag(
        8,
        "Sequences of --max_seq_length tokens in a batch of prediction; at "
        "least 4,096 tokens are used.",
        at_least=1,
        topic=RARE,
    )
    freeze_layers: int = flag(
        0,
        "Number of layers to freeze, besides the embeddings. 0 freezes "
        "nothing.",
        at_least=0,
        resume=True,
        topic=RARE,
    )
    keep_layers: tuple[str, ...] = flag(
        (),
        "Layers of --init_checkpoint to keep, such as 0,2,4, or their number, "
        "evenly spaced. The trained model has only these layers.",
        resume=True,
        topic=RARE,
    )
    num_train_epochs: float = flag(
        3.0,
        "Number of training epochs.",
        at_least=0.0,
        at_most=1e6,
        resume=True,
    )
    warmup_proportion: float = flag(
        0.1,
        "Fraction of the training steps used for warm-up.",
        at_least=0.0,
        at_most=1.0,
        resume=True,
    )
    layer_decay: float = flag(
        1.0,
        "Factor of a layer's learning rate relative to the layer above it.",
        at_least=1e-6,
        at_most=1.0,
        resume=True,
        topic=RARE,
    )
    export_dir: str | None = flag(
        None,
        "Folder for the exported SavedModel.",
        path=True,
        parse=lambda path: outputs.check_new_folder(
            path, "pass another --export_dir"
        ),
        per_worker=True,
        topic=OUTPUT,
    )
    export_precision: str = flag(
        "float32",
        "Precision of the SavedModel's weights and computation. bfloat16 is "
        "faster on devices that support it, but less precise.",
        choices=("float32", "bfloat16"),
        topic=OUTPUT,
    )
    export_openvino: str | None = flag(
        None,
        "Precision of the exported OpenVINO network, which predict.py and "
        "serve.py run without TensorFlow. none exports no network. Default: "
        "float32 if OpenVINO is installed.",
        choices=(*openvino_engine.PRECISIONS, openvino_engine.NONE),
        topic=OUTPUT,
    )

    @property
    def fits_decision(self) -> bool:
        """Whether post-processing is fitted to the evaluation file."""
        return False

    @property
    def changes_decision(self) -> bool:
        """Whether the run records another post-processing than the model."""
        return self.fits_decision

    @property
    def evaluates(self) -> bool:
        """Whether the run evaluates, during or after training."""
        return self.do_eval or (self.do_train and self.eval_steps > 0)

    @property
    def needed_files(self) -> list[str]:
        """Names of the flags whose files the run reads."""
        needed = {
            "train_file": self.do_train,
            "eval_file": self.evaluates and not self.num_folds,
            "predict_file": self.do_predict,
        }
        return [name for name, is_needed in needed.items() if is_needed]

    @property
    def file_flags(self) -> list[str]:
        """Names of the flags that must be given for `needed_files`."""
        return self.needed_files

    @property
    def files(self) -> dict[str, str]:
        """Files that the run reads: flag -> path."""
        return {name: getattr(self, name) for name in self.file_flags}

    def for_model(self, model: ModelFolder) -> Self:
        """Returns the settings of a run of a model, and checks that they fit.

        Args:
            model: ModelFolder. Initial model.

        Raises:
            UserError: the files of the model contradict each other, or the
                settings do not fit them.
        """
        # Each file is valid on its own; here they are checked together.
        model.check()
        if self.export_dir:
            vocabulary_checks.check_exportable(model.tokenizer)

        # Flags must also fit the network.
        config, where = model.config, model.config_file
        config.check_length(self.max_seq_length, "max_seq_length", where)
        if self.freeze_layers > config.num_hidden_layers:
            raise UserError(
                f"--freeze_layers={self.freeze_layers}",
                expected="at most num_hidden_layers, "
                f"{config.num_hidden_layers} ({where})",
            )
        return self


FineTuningT = TypeVar("FineTuningT", bound=FineTuning)


def teacher_of(settings: FineTuning) -> str | None:
    """Returns --teacher; None if it is not given, or is no flag of the script.

    Args:
        settings: FineTuning. Settings of the script.
    """
    return settings.teacher if isinstance(settings, TeacherFlags) else None
