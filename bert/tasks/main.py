"""Start and end of training scripts: signals, workers, memory."""

import dataclasses
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

# First lines of errors from TensorFlow and XLA.
_NO_MEMORY = "(OOM when allocating|Out of memory while).*"


def with_local_model(settings: Any) -> Any:
    """Downloads the published model that --init_checkpoint names.

    Args:
        settings: settings of a training script.

    Returns:
        The settings with the model's folder, which checkpoints record.

    Raises:
        UserError: the model does not exist.
        StorageError: the model cannot be downloaded now.
    """
    values = flags.as_dict(settings)
    name = values["init_checkpoint"] or values.get("bert_hub_module_handle")
    return dataclasses.replace(settings, init_checkpoint=published.fetch(name))


def complete(settings: Any) -> Any:
    """Completes the settings of a script from files beside its model.

    Without --max_seq_length a fine-tuned model keeps its length.

    Args:
        settings: settings of a script, with `finetuning`.

    Returns:
        The settings with the folder of a published model, and the length.

    Raises:
        UserError: the model does not exist, a file is damaged or was edited,
            or the length contradicts a flag.
        StorageError: the model cannot be downloaded now.
    """
    settings = with_local_model(settings)

    # Truncate texts as in training.
    length = run_folder.recorded_length(settings)
    if length and "max_seq_length" not in settings.given:
        settings = dataclasses.replace(settings, max_seq_length=length)
        flags.check(settings)
    return settings


def run(main: Callable[[list[str]], None], argv: list[str]) -> int:
    """Calls `common.main.run` for a training script.

    A lost worker ends the script with RUN_AGAIN. Several workers exit together
    within this function. SIGTERM ends the script with RUN_AGAIN also before
    the first step and after the last one, without saving.

    Args:
        main: function. Main function of the script.
        argv: list of str. Command line.

    Returns:
        Exit code.
    """
    has_others = os.environ.get(cluster.VARIABLE) or slurm.num_tasks() > 1
    if has_others and os.environ[tensorflow_log.LEVEL] == "2":
        # TensorFlow's errors about lost workers would hide this project's.
        os.environ[tensorflow_log.LEVEL] = "3"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(preemption.RUN_AGAIN))

    return common_main.run(main, argv, workers.leave, explain)


def explain(error: Exception) -> Exception:
    """Returns an error that names a lost worker, or a lack of memory."""
    shortage = re.search(_NO_MEMORY, str(getattr(error, "message", "")))
    if not shortage:
        return workers.explain(error)
    return UserError(
        f"the device is out of memory: {shortage[0]}",
        fix="raise --gradient_accumulation_steps, pass --remat or "
        "--precision=bfloat16, or lower the batch size or --max_seq_length",
    )
