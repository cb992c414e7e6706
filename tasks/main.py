"""Start and end of a script that trains: workers and signals."""

import os
import re
import signal
import sys
from collections.abc import Callable
from typing import Any

from common import flags
from common import main as common_main
from common.errors import UserError
from tasks import output_dir
from training import cluster, preemption, workers

# TensorFlow's and XLA's first lines.
_NO_MEMORY = "(OOM when allocating|Out of memory while).*"


def parse(argv: list[str], settings_class: type, usage: str) -> Any:
    """Parses the flags; of several workers, only the first writes and prints.

    A run that trains claims its output_dir until the end of the script.

    Args:
        argv: command line of the script.
        settings_class: dataclass of the settings.
        usage: docstring of the script.

    Returns:
        the settings; other workers than the first have their own output_dir.

    Raises:
        UserError: if `flags.parse` raises it, there are several workers and
            --do_train is not set, --tpu_name is empty, the checkpoint to
            start from does not exist, or another process trains in output_dir.
    """
    settings = flags.parse(argv, settings_class, usage)
    values = flags.as_dict(settings)
    wants_tpu = values["use_tpu"] or values["distribution"] == "tpu"
    if wants_tpu and values["tpu_name"] == "":
        raise UserError(
            "--tpu_name is empty",
            expected="the name of a TPU",
            fix="omit the flag on a TPU VM",
        )
    begun = output_dir.has_checkpoint(values.get("output_dir") or "")
    if values["init_checkpoint"] and not begun:
        output_dir.check_checkpoint(values["init_checkpoint"])
    own = cluster.from_flags(values["distribution"], values["use_tpu"])
    if values.get("do_train") and (own is None or own.is_chief):
        common_main.hold(output_dir.claim(values["output_dir"]))
    if own is None:
        return settings
    if not values.get("do_train"):
        raise UserError(
            f"{cluster.VARIABLE} names {len(own.tasks)} processes",
            expected="one: only training is distributed",
            fix=f"pass --do_train, or unset {cluster.VARIABLE}",
        )
    if own.is_chief:
        return settings
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    return flags.replace(
        settings,
        output_dir=workers.own_folder(values["output_dir"]),
        **dict.fromkeys(flags.as_dict(settings, "chief")),
    )


def run(main: Callable[[list[str]], None], argv: list[str]) -> int:
    """Calls `common.main.run` for a script that trains.

    A lost worker ends the script with RUN_AGAIN, and several workers leave
    together: the process ends here. SIGTERM ends it with RUN_AGAIN also before
    the first step and after the last one, when there is nothing to save.

    Args:
        main: function of the script.
        argv: command line.

    Returns:
        the exit code.
    """
    if os.environ.get(cluster.VARIABLE):
        # TensorFlow's errors about lost workers would hide ours.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(preemption.RUN_AGAIN))

    def watched(argv):
        try:
            with workers.watch():
                main(argv)
        except Exception as error:
            found = re.search(_NO_MEMORY, str(getattr(error, "message", "")))
            if not found:
                raise
            raise UserError(
                f"the device is out of memory: {found[0]}",
                fix="raise --gradient_accumulation_steps, pass --remat or "
                "--precision=bfloat16, or lower the batch size or "
                "--max_seq_length",
            ) from None

    return common_main.run(watched, argv, workers.leave)
