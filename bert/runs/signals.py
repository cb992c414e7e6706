"""Runs the main function of a training script: signals, workers, memory."""

import os
import re
import signal
import sys
from collections.abc import Callable

from bert.common import main as common_main
from bert.common import tensorflow_log
from bert.common.errors import UserError
from bert.training import preemption, workers

# First lines of errors from TensorFlow and XLA.
_NO_MEMORY = "(OOM when allocating|Out of memory while).*"


def run(main: Callable[[list[str]], None]) -> int:
    """Runs main(sys.argv) of a script that trains; prints errors as a line.

    A lost worker ends the script with RUN_AGAIN. Several workers exit
    together. SIGTERM ends the script with RUN_AGAIN also before the first step
    and after the last one, without saving.

    Args:
        main: function. Takes the command line.

    Returns:
        The exit code.
    """
    # TensorFlow's errors about lost workers would hide this project's. For each
    # program of `program_cache` it logs preferences of the compiler as missing
    # features of the processor.
    os.environ.setdefault(tensorflow_log.LEVEL, "3")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(preemption.RUN_AGAIN))
    return common_main.run(main, sys.argv, workers.leave, explain)


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
