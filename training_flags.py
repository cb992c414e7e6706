"""Flags of every script that trains. Reads none."""

from absl import flags

import common_flags


def define_training(values: flags.FlagValues) -> None:
    """Defines which network is trained, how, on what, and what is kept."""
    common_flags.define_model(values)
    common_flags.define_seed(values)
    common_flags.define_devices(values)
    flags.DEFINE_string(
        "output_dir",
        None,
        "Folder of the checkpoints and results.",
        flag_values=values,
        required=True,
    )
    flags.DEFINE_bool("do_train", False, "Train.", flag_values=values)
    flags.DEFINE_bool(
        "use_xla",
        False,
        "Compile forward and backward pass with XLA.",
        flag_values=values,
    )
    for name, default, lowest, meaning in (
        ("train_batch_size", 32, 1, "Rows of a batch, over all devices."),
        ("eval_batch_size", 8, 1, "Rows of a batch in evaluation."),
        ("save_checkpoints_steps", 1000, 1, "Steps between checkpoints."),
        ("keep_checkpoint_max", 5, 1, "So many checkpoints are kept."),
        ("iterations_per_loop", 1000, 1, "At most so many steps a call."),
        ("log_steps", 100, 1, "Steps between two points of the curves."),
        ("eval_steps", 0, 0, "Steps between evaluations while training."),
    ):
        flags.DEFINE_integer(
            name, default, meaning, flag_values=values, lower_bound=lowest
        )
    flags.DEFINE_float(
        "learning_rate",
        5e-5,
        "Peak learning rate of Adam.",
        flag_values=values,
        lower_bound=0.0,
    )
