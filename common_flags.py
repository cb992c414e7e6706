"""What the scripts share: flags, and how a script ends. Reads no flag."""

import os
import sys
from collections.abc import Callable

from absl import flags

import storage
from errors import UserError

DEVICE_FLAGS = (
    "distribution",
    "use_tpu",
    "tpu_name",
    "tpu_zone",
    "gcp_project",
    "master",
)


def define_model(values: flags.FlagValues) -> None:
    """Defines the flags that say which network."""
    flags.DEFINE_string(
        "bert_config_file",
        None,
        "JSON file with the sizes of the network.",
        flag_values=values,
        required=True,
    )
    flags.DEFINE_string(
        "init_checkpoint",
        None,
        "Checkpoint to start from: its prefix, such as bert_model.ckpt.",
        flag_values=values,
    )


def define_seed(values: flags.FlagValues) -> None:
    """Defines the seed of everything random."""
    flags.DEFINE_integer(
        "random_seed",
        12345,
        "Seed of everything that is drawn.",
        flag_values=values,
    )


def define_lengths(values: flags.FlagValues) -> None:
    """Defines the lengths of a pre-training record."""
    flags.DEFINE_integer(
        "max_seq_length",
        128,
        "Pieces in a row, [CLS] and [SEP] included.",
        flag_values=values,
        lower_bound=5,
    )
    flags.DEFINE_integer(
        "max_predictions_per_seq",
        20,
        "At most so many masked pieces in a row.",
        flag_values=values,
        lower_bound=1,
    )


def define_devices(values: flags.FlagValues) -> None:
    """Defines the flags of the devices, as in the original release."""
    flags.DEFINE_bool(
        "use_tpu", False, "Train on a Cloud TPU.", flag_values=values
    )
    for name, meaning in (
        ("tpu_name", "Name or grpc:// address of the TPU."),
        ("tpu_zone", "Zone of the TPU; detected if not given."),
        ("gcp_project", "Project of the TPU; detected if not given."),
        ("master", "Address of the TPU's master, instead of its name."),
    ):
        flags.DEFINE_string(name, None, meaning, flag_values=values)
    flags.DEFINE_integer(
        "num_tpu_cores",
        8,
        "Cores of the TPU; taken from the TPU itself.",
        flag_values=values,
    )
    flags.DEFINE_enum(
        "distribution",
        "auto",
        ["auto", "one_device", "mirrored", "tpu"],
        "Devices: auto takes the TPU with --use_tpu, all GPUs if there are "
        "two or more, else one device.",
        flag_values=values,
    )


def parse(
    argv: list[str],
    define_flags: Callable[[flags.FlagValues], None],
    usage: str,
) -> flags.FlagValues:
    """Parses a command line.

    Args:
        argv: the command line, program name first.
        define_flags: fills the flag values of the script.
        usage: the script's docstring, printed by `--help`.

    Returns:
        the parsed flags.

    Raises:
        UserError: an unknown flag, a bad value, a missing flag, or a word
            that belongs to no flag.
        SystemExit: after `--help`.
    """
    values = flags.FlagValues()
    define_flags(values)
    flags.DEFINE_bool("help", False, "Show this.", flag_values=values)
    if any(word in ("--help", "-h", "-help") for word in argv[1:]):
        print(f"{usage}\n\nFlags:{values.get_help()}")
        raise SystemExit(0)
    try:
        rest = values(argv)
    except flags.Error as error:
        raise UserError(str(error), fix="see --help") from None
    if len(rest) > 1:
        raise UserError(
            f"{rest[1]!r} belongs to no flag",
            fix="write --flag=value; quote values that have spaces",
        )
    return values


def list_files(patterns: str, flag: str) -> list[str]:
    """Files of a comma-separated list of paths and globs.

    Args:
        patterns: what the user passed; a glob's files are sorted.
        flag: name of the flag, for the message.

    Raises:
        UserError: a pattern matches no file, or a folder.
    """
    files = []
    for pattern in patterns.split(","):
        exists = storage.exists(pattern)  # its name may look like a glob
        matches = [pattern] if exists else storage.glob(pattern)
        if not matches:
            raise UserError(
                f"--{flag}={pattern!r} matches no file",
                fix="check the path; a comma separates several",
            )
        for match in matches:
            if storage.is_folder(match):
                raise UserError(
                    f"--{flag} is a folder",
                    path=match,
                    expected="files",
                    fix=f"pass --{flag}='{match}/*'",
                )
        files += matches
    return files


def run(main: Callable[[list[str]], int | None], argv: list[str]) -> int:
    """Runs a script's `main` and returns its exit code: main's, or 0.

    A user's mistake is printed on one line and gives 2.
    """
    # TensorFlow's notes on devices that are not there would bury ours.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    try:
        return main(argv) or 0
    except UserError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return 2
    except KeyboardInterrupt:
        return 130
