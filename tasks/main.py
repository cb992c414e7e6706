"""Start and end of a script that trains: signals, workers, memory."""

import atexit
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable
from typing import Any

from bert.common import flags, storage
from bert.common import main as common_main
from bert.common.errors import UserError
from bert.common.formats import published
from bert.tasks import finetuning
from bert.training import cluster, preemption, workers

# TensorFlow's and XLA's first lines.
_NO_MEMORY = "(OOM when allocating|Out of memory while).*"


def parse(argv: list[str], settings_class: type, usage: str) -> Any:
    """Parses and checks the command line of a script that trains.

    From here on --init_checkpoint is a path: the name of a published model
    becomes its folder, also in the description of the run. With --plan the
    output_dir is a temporary folder. Without --max_seq_length a fine-tuned
    model keeps its length.

    Args:
        argv, settings_class, usage: as for `flags.parse`.

    Raises:
        UserError: a flag is invalid, or there is no such model.
        StorageError: the model cannot be fetched now.
    """
    settings = flags.parse(argv, settings_class, usage)
    settings.check()
    values = flags.as_dict(settings)
    if values["plan"]:
        folder = tempfile.mkdtemp(prefix="plan-")
        atexit.register(storage.remove_folder, folder)
        settings = flags.replace(settings, output_dir=folder)
    start = values["init_checkpoint"] or values.get("bert_hub_module_handle")
    settings = flags.replace(settings, init_checkpoint=published.fetch(start))
    if hasattr(settings, "tuning"):
        length = finetuning.recorded_length(settings.tuning.training)
        if length and "max_seq_length" not in settings.given:
            settings = flags.replace(settings, max_seq_length=length)
            settings.check()
    return settings


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
