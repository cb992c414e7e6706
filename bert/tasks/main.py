"""Start and end of a script that trains: signals, workers, memory."""

import os
import re
import signal
import sys
from collections.abc import Callable
from typing import Any

from bert.common import flags, tensorflow_log
from bert.common import main as common_main
from bert.common.errors import UserError
from bert.common.formats import published
from bert.tasks import run_folder
from bert.training import cluster, preemption, slurm, workers

# TensorFlow's and XLA's first lines.
_NO_MEMORY = "(OOM when allocating|Out of memory while).*"


def with_local_model(settings: Any) -> Any:
    """Fetches the published model that --init_checkpoint names.

    Args:
        settings: of a script that trains.

    Returns:
        the settings with its folder, which the description of the run has.

    Raises:
        UserError: there is no such model.
        StorageError: it cannot be fetched now.
    """
    values = flags.as_dict(settings)
    name = values["init_checkpoint"] or values.get("bert_hub_module_handle")
    return flags.replace(settings, init_checkpoint=published.fetch(name))


def complete(settings: Any) -> Any:
    """Completes the settings of a script by what is beside its model.

    Without --max_seq_length a fine-tuned model keeps its length.

    Args:
        settings: of a script, with `finetuning`.

    Returns:
        the settings with the folder of a published model, and with the length.

    Raises:
        UserError: there is no such model, a file is damaged or was edited, or
            the length contradicts a flag.
        StorageError: it cannot be fetched now.
    """
    settings = with_local_model(settings)

    # Texts are cut where they were cut in training.
    length = run_folder.recorded_length(settings.finetuning.training)
    if length and "max_seq_length" not in settings.given:
        settings = flags.replace(settings, max_seq_length=length)
        flags.check(settings)
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
    has_others = os.environ.get(cluster.VARIABLE) or slurm.num_tasks() > 1
    if has_others and os.environ[tensorflow_log.LEVEL] == "2":
        # TensorFlow's errors about lost workers would hide ours.
        os.environ[tensorflow_log.LEVEL] = "3"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(preemption.RUN_AGAIN))

    return common_main.run(main, argv, workers.leave, explain)


def explain(error: Exception) -> Exception:
    """Returns an error that names a lost worker, or the lack of memory."""
    shortage = re.search(_NO_MEMORY, str(getattr(error, "message", "")))
    if not shortage:
        return workers.explain(error)
    return UserError(
        f"the device is out of memory: {shortage[0]}",
        fix="raise --gradient_accumulation_steps, pass --remat or "
        "--precision=bfloat16, or lower the batch size or --max_seq_length",
    )
