"""What the scripts share: flags, and how a script ends. Reads no flag."""

import os
import re
import sys
from collections.abc import Callable

from absl import flags

from common import storage
from common.errors import UserError
from training import cluster, preemption
from training import workers as member

DEVICE_FLAGS = (
    "distribution",
    "use_tpu",
    "tpu_name",
    "tpu_zone",
    "gcp_project",
    "master",
    "num_tpu_cores",
    "cluster_timeout",
)
_PATH = r".*_(file|dir|path|checkpoint|vocab|handle)|input|output|model|phases"
_HOME = r"(?<![^,=])~[^/,]*"  # where a path begins, also in a list of paths


def define_model(values: flags.FlagValues, required: bool = True) -> None:
    """Defines the flags that say which network.

    Args:
        values: gets the flags.
        required: there is no other way to say its sizes.
    """
    flags.DEFINE_string(
        "bert_config_file",
        None,
        "JSON file with the sizes of the network.",
        flag_values=values,
        required=required,
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
        None,
        "Cores that the TPU must have; else it says itself how many.",
        flag_values=values,
    )
    flags.DEFINE_enum(
        "distribution",
        "auto",
        ["auto", "one_device", "mirrored", "multi_worker", "tpu"],
        "Devices: auto takes the TPU with --use_tpu, several workers if the "
        "environment has TF_CONFIG, all GPUs if there are two or more, else "
        "one device.",
        flag_values=values,
    )
    flags.DEFINE_float(
        "cluster_timeout",
        300.0,
        "Seconds to wait for the other workers.",
        flag_values=values,
        lower_bound=1.0,
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
    _expand_home(values)
    if "distribution" in values:
        _take_role(values)
    return values


def _expand_home(values: flags.FlagValues) -> None:
    """Replaces `~` and `~user` in all flags that are paths, by their name."""
    for name in filter(re.compile(_PATH).fullmatch, values):
        if isinstance(path := values[name].value, str):
            values[name].value = re.sub(
                _HOME, lambda home: os.path.expanduser(home[0]), path
            )


def _take_role(values: flags.FlagValues) -> None:
    """Lets only the first of several workers write and print."""
    workers = cluster.of_flags(values.distribution, values.use_tpu)
    if workers is None:
        return
    if not ("do_train" in values and values.do_train):
        raise UserError(
            f"{cluster.VARIABLE} names {len(workers.tasks)} processes",
            expected="one: only training is shared",
            fix=f"pass --do_train, or unset {cluster.VARIABLE}",
        )
    if workers.is_chief:
        return
    values.output_dir = member.own_folder(workers, values.output_dir)
    for name in ("export_dir", "glue_dir"):
        if name in values:
            values[name].value = None
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115


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

    A user's mistake is printed on one line and gives 2; so is a worker that
    is lost, and gives RUN_AGAIN. Several workers leave together: the process
    ends here.
    """
    # TensorFlow's notes on devices that are not there would bury ours, and
    # so would its errors on workers that are not.
    level = "3" if os.environ.get(cluster.VARIABLE) else "2"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", level)
    # oneDNN's matrix products are a quarter faster on any x86; TensorFlow
    # takes them by itself only where it finds AVX-512.
    os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    try:
        with member.watch():
            code = main(argv) or 0
    except (UserError, cluster.WorkerLostError) as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        is_lost = isinstance(error, cluster.WorkerLostError)
        # Before what the error holds is freed: TensorFlow would wait there.
        return member.leave(preemption.RUN_AGAIN if is_lost else 2)
    except KeyboardInterrupt:
        code = 130
    except SystemExit as end:
        code = end.code or 0
    return member.leave(code)
