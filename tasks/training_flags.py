"""Flags of every script that trains."""

import re
import signal
import sys
from collections.abc import Callable

from absl import flags

from common.errors import UserError
from tasks import common_flags
from training import preemption

_CHOICES = (  # flag, what it may be, the default first, its meaning
    (
        "optimizer",
        ["adamw", "corrected_adamw", "lamb"],
        "The original's Adam, Adam corrected for bias, or LAMB.",
    ),
    (
        "precision",
        ["float32", "bfloat16", "float16", "auto"],
        "What the network computes in; auto takes bfloat16 where the device "
        "has it, else float32.",
    ),
)


def define_training(values: flags.FlagValues, required: bool = True) -> None:
    """Defines which network is trained, how, on what, and what is kept.

    Args:
        values: gets the flags.
        required: there is no other way to say the network's sizes.
    """
    common_flags.define_model(values, required)
    common_flags.define_seed(values)
    common_flags.define_devices(values)
    flags.DEFINE_string(
        "output_dir",
        None,
        "Folder of the checkpoints and results.",
        flag_values=values,
        required=True,
    )
    flags.DEFINE_string(
        "train_for",
        None,
        "Stop and save after this long, such as 90m, 36h or 30s.",
        flag_values=values,
    )
    flags.DEFINE_bool("do_train", False, "Train.", flag_values=values)
    for name, default, meaning in (
        ("use_xla", False, "Compile forward and backward pass with XLA."),
        ("islands", True, "On CPUs, compile what is between matmuls."),
        ("remat", False, "Compute layers again rather than keep them."),
    ):
        flags.DEFINE_bool(name, default, meaning, flag_values=values)
    for name, choices, meaning in _CHOICES:
        flags.DEFINE_enum(
            name, choices[0], choices, meaning, flag_values=values
        )
    flags.DEFINE_string(
        "skip_steps",
        "",
        "Steps whose batches are drawn but not learned from, first and last "
        "included: a:b[,c:d].",
        flag_values=values,
    )
    for name, default, lowest, meaning in (
        ("train_batch_size", 32, 1, "Rows of a batch, over all devices."),
        (
            "gradient_accumulation_steps",
            1,
            1,
            "Parts of a batch that are computed one after the other.",
        ),
        ("eval_batch_size", 8, 1, "Rows of a batch in evaluation."),
        ("save_checkpoints_steps", 1000, 1, "Steps between checkpoints."),
        ("keep_checkpoint_max", 5, 1, "So many checkpoints are kept."),
        ("iterations_per_loop", 1000, 1, "At most so many steps a call."),
        ("log_steps", 100, 1, "Steps between two points of the curves."),
        ("eval_steps", 0, 0, "Steps between evaluations while training."),
        (
            "early_stopping_patience",
            0,
            0,
            "Stop after so many evaluations while training without a better "
            "one; 0: never.",
        ),
    ):
        flags.DEFINE_integer(
            name, default, meaning, flag_values=values, lower_bound=lowest
        )
    flags.DEFINE_float(
        "learning_rate",
        5e-5,
        "Peak learning rate.",
        flag_values=values,
        lower_bound=0.0,
    )


def check(values: flags.FlagValues, batch_sizes: list[int]) -> None:
    """Checks the flags of `define_training` against each other.

    Args:
        values: the flags.
        batch_sizes: of training.

    Raises:
        UserError: they do not go together.
    """
    parts = values.gradient_accumulation_steps
    for batch_size in batch_sizes:
        if values.do_train and batch_size % parts:
            raise UserError(
                f"--gradient_accumulation_steps={parts}",
                expected=f"a divisor of {batch_size}, the rows of a batch",
            )
    is_tpu = values.distribution == "tpu" or (
        values.distribution == "auto" and values.use_tpu
    )
    if values.precision == "float16" and is_tpu:
        raise UserError(
            "--precision=float16 on a TPU", expected="bfloat16 or float32"
        )
    step_ranges(values.skip_steps)


def ways(values: flags.FlagValues) -> dict[str, bool]:
    """Arguments of `fused_ops.step_scope`; none is fused with --use_xla."""
    return {
        "islands": values.islands and not values.use_xla,
        "remat": values.remat,
    }


def step_ranges(text: str) -> tuple[tuple[int, int], ...]:
    """Reads --skip_steps.

    Args:
        text: "a:b,c:d", or nothing.

    Returns:
        (first, last) of each range.

    Raises:
        UserError: it is something else.
    """
    ranges = []
    for part in text.split(",") if text else []:
        match = re.fullmatch(r"(\d+):(\d+)", part)
        first, last = map(int, match.groups()) if match else (0, 0)
        if not 1 <= first <= last:
            raise UserError(
                f"--skip_steps={text}: {part!r}",
                expected="first:last, steps from 1 on, as in 70:80,95:95",
            )
        ranges.append((first, last))
    return tuple(ranges)


def seconds(text: str | None) -> float | None:
    """Reads --train_for.

    Raises:
        UserError: it is no time.
    """
    if text is None:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if match is None:
        raise UserError(
            f"--train_for={text}", expected="a time such as 90m, 36h or 30s"
        )
    return float(match.group(1)) * {"s": 1, "m": 60, "h": 3600}[match.group(2)]


def run(main: Callable[[list[str]], None], argv: list[str]) -> int:
    """As `common_flags.run`, of a script that trains.

    SIGTERM ends it with the code that says "run me again" also before the
    first step and after the last one, where there is nothing to save.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(preemption.RUN_AGAIN))
    return common_flags.run(main, argv)
