"""Settings of the training scripts; each field is a flag."""

import dataclasses
import re
from collections.abc import Iterator

from bert.common import flags
from bert.common.errors import UserError
from bert.common.flags import (
    MODEL,
    OUTPUT,
    RARE,
    REQUIRED,
    TPU,
    TRAINING,
    BaseSettings,
    flag,
    read_time,
)
from bert.common.formats.json_files import Json
from bert.common.rules import needs, rule
from bert.training import cluster

_OPTIMIZERS = ("bert_adam", "corrected_adamw", "lamb")


def _check_optimizer(name: str) -> None:
    """Raises a UserError for the name of no optimizer, or a former name."""
    if name not in _OPTIMIZERS:
        raise UserError(
            f"--optimizer={name}",
            expected=f"one of {', '.join(_OPTIMIZERS)}",
            fix="the former adamw is bert_adam; AdamW of other libraries is "
            "corrected_adamw"
            if name == "adamw"
            else "see --help",
        )


def _check_cluster(settings: "Devices") -> None:
    """Raises a UserError if there are workers, but nothing is trained."""
    workers = cluster.from_flags(settings.distribution, settings.use_tpu)
    if workers and not getattr(settings, "do_train", False):
        raise UserError(
            f"a cluster of {len(workers.tasks)} processes",
            expected="one: only training is distributed",
            fix="pass --do_train, or --distribution=one_device",
        )


@dataclasses.dataclass(frozen=True)
class Devices(BaseSettings):
    """Devices, with the flags of the original."""

    RULES = [
        rule(
            "Several workers need --do_train.",
            _check_cluster,
            "distribution=multi_worker",
        ),
    ]
    topic = TPU

    use_tpu: bool = flag(False, "Run on a Cloud TPU.")
    tpu_name: str | None = flag(None, "Name or grpc:// address of the TPU.")
    tpu_zone: str | None = flag(None, "Zone of the TPU; detected if not given.")
    gcp_project: str | None = flag(
        None, "Project of the TPU; detected if not given."
    )
    master: str | None = flag(
        None, "Address of the TPU's master, instead of its name."
    )
    num_tpu_cores: int | None = flag(
        None, "Cores that the TPU must have; detected if not given."
    )
    distribution: str = flag(
        "auto",
        "Devices. auto selects the TPU with --use_tpu, several workers with "
        "TF_CONFIG or several srun tasks, all GPUs if there are several, else "
        "one device.",
        choices=("auto", "one_device", "mirrored", "multi_worker", "tpu"),
        per_worker=True,
        topic=RARE,
    )
    cluster_timeout: float = flag(
        300.0,
        "Seconds to wait for the other workers, or a time such as 10m.",
        at_least=1.0,
        at_most=1e6,
        is_time=True,
        per_worker=True,
    )

    @property
    def is_tpu(self) -> bool:
        """Whether the flags select a TPU."""
        return self.distribution == "tpu" or (
            self.distribution == "auto" and self.use_tpu
        )


def _check_time(text: str) -> None:
    """Raises a UserError if --max_time is not a time with a unit."""
    if read_time(text) is None:
        raise UserError(
            f"--max_time={text}", expected="a time such as 90m, 36h or 30s"
        )


def read_steps(text: str) -> tuple[int, int]:
    """Parses a range of steps such as 70:80.

    Args:
        text: str. First and last step, inclusive.

    Raises:
        UserError: the text is not a range of steps from 1.
    """
    match = re.fullmatch(r"(\d+):(\d+)", text)
    first, last = map(int, match.groups()) if match else (0, 0)
    if not 1 <= first <= last:
        raise UserError(
            f"--profile_steps: {text!r}",
            expected="first:last, steps from 1, such as 70:80",
        )
    return first, last


def _check_tpu(settings: "Training") -> Iterator[UserError]:
    """Yields an error for each flag that a TPU does not support."""
    if settings.is_tpu and settings.precision in ("float16", "tf32"):
        yield UserError(
            f"--precision={settings.precision} on a TPU",
            expected="bfloat16 or float32",
        )
    if settings.is_tpu and settings.deterministic:
        yield UserError("--deterministic on a TPU", expected="CPUs or GPUs")


@dataclasses.dataclass(frozen=True)
class Training(Devices):
    """Checkpoints, precision, optimizer and limits of a training run."""

    RULES = [
        rule(
            "TPUs compute in bfloat16 or float32, without --deterministic.",
            _check_tpu,
            "use_tpu",
            "deterministic",
        ),
        needs("dry_run", "do_train"),
        needs("resume_optimizer", "do_train"),
        needs("resume_optimizer", "init_checkpoint"),
    ]
    topic = TRAINING

    bert_config_file: str | None = flag(
        None,
        "JSON file with the sizes of the network; default: the one beside "
        "--init_checkpoint.",
        path=True,
        topic=REQUIRED,
    )
    init_checkpoint: str | None = flag(
        None,
        "Checkpoint to start from: its prefix, such as bert_model.ckpt, its "
        "folder, or a name, such as hf://google-bert/bert-base-uncased.",
        path=True,
        topic=MODEL,
    )
    random_seed: int = flag(12345, "Random seed.", resume=True, topic=RARE)
    output_dir: str = flag(
        None,
        "Folder of the checkpoints and results.",
        required=True,
        path=True,
        topic=OUTPUT,
    )
    max_time: str | None = flag(
        None,
        "Stop and save after this time, such as 90m, 36h or 30s. Default: a "
        "minute before the end of a SLURM job, else no limit.",
        parse=_check_time,
        per_worker=True,
    )
    do_train: bool = flag(False, "Train.")
    dry_run: bool = flag(
        False,
        "With --do_train: take a dozen steps, print the memory, the largest "
        "batch and the hours of the run, and stop without writing files.",
        topic=RARE,
    )
    resume_optimizer: bool = flag(
        False,
        "Continue with the Adam moments and the step of --init_checkpoint, "
        "such as a checkpoint of the original code.",
        topic=RARE,
    )
    report: bool = flag(
        True,
        "Write report.html to --output_dir when training ends.",
    )
    use_xla: bool | None = flag(
        None,
        "Compile the whole step with XLA. Default: on GPUs; TPUs always do.",
        resume=True,
        topic=RARE,
    )
    remat: bool = flag(
        False,
        "Recompute the activations of each layer in the backward pass.",
        topic=RARE,
    )
    optimizer: str = flag(
        "bert_adam",
        "bert_adam: the original's Adam, without bias correction; "
        "corrected_adamw: with bias correction; lamb: LAMB.",
        parse=_check_optimizer,
        resume=True,
        topic=RARE,
    )
    precision: str = flag(
        "float32",
        "Precision of the computation. auto selects bfloat16 where it is "
        "faster, else float32. tf32 is float32 with TensorFloat-32 matrix "
        "products, on GPUs.",
        choices=("float32", "tf32", "bfloat16", "float16", "auto"),
        resume=True,
    )
    deterministic: bool | None = flag(
        None,
        "Use only operations that give the same bits in each run. Default: "
        "with a single device.",
        resume=True,
        topic=RARE,
    )
    profile_steps: str | None = flag(
        None,
        "Profile these steps for TensorBoard, inclusive: first:last.",
        parse=read_steps,
        per_worker=True,
        topic=RARE,
    )
    train_batch_size: int = flag(
        32, "Examples of a batch, over all devices.", at_least=1, resume=True
    )
    gradient_accumulation_steps: int = flag(
        1,
        "Number of micro-batches of a batch, computed one after the other.",
        at_least=1,
        resume=True,
        topic=RARE,
    )
    eval_batch_size: int = flag(
        8, "Examples of a batch in evaluation.", at_least=1
    )
    save_checkpoints_steps: int = flag(
        1000, "Steps between checkpoints.", at_least=1, topic=OUTPUT
    )
    keep_checkpoint_max: int = flag(
        5, "Number of checkpoints to keep.", at_least=1, topic=OUTPUT
    )
    iterations_per_loop: int = flag(
        1000, "Maximum number of steps in one call.", at_least=1, topic=RARE
    )
    log_steps: int | None = flag(
        None,
        "Steps between points of the training curves. Default: a fiftieth of "
        "the run, at most 100.",
        at_least=1,
        topic=OUTPUT,
    )
    eval_steps: int = flag(
        0, "Steps between evaluations during training.", at_least=0
    )
    early_stopping_patience: int = flag(
        0,
        "Stop after this number of evaluations without an improvement; "
        "0: never.",
        at_least=0,
    )
    learning_rate: float = flag(
        5e-5,
        "Peak learning rate.",
        at_least=0.0,
        at_most=1e3,
        resume=True,
    )

    @property
    def described(self) -> dict[str, Json]:
        """Settings that a checkpoint records: the flags."""
        return flags.as_dict(self)

    @property
    def steps_to_profile(self) -> tuple[int, int] | None:
        """(first, last) of --profile_steps."""
        if self.profile_steps is None:
            return None
        return read_steps(self.profile_steps)

    @property
    def seconds(self) -> float | None:
        """--max_time in seconds. Default: until the SLURM job ends."""
        if self.max_time is None:
            return cluster.slurm_seconds_left()
        return read_time(self.max_time)

    def check_micro_batches(self, batch_size: int) -> None:
        """Checks that a training batch divides into micro-batches."""
        parts = self.gradient_accumulation_steps
        if self.do_train and batch_size % parts:
            raise UserError(
                f"--gradient_accumulation_steps={parts}",
                expected=f"a divisor of {batch_size}, the batch size",
            )
