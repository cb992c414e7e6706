"""Time and memory of a command."""

import os
import subprocess
import time


def run(command: list[str], **streams) -> tuple[float, float, int]:
    """Runs a command without its output.

    Args:
        command: the words.
        streams: of `subprocess.Popen`, such as stderr.

    Returns:
        seconds, CPU seconds of all its processes, and megabytes of the
        largest of them, at least those of this process.
    """
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, **streams)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start

    process.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise SystemExit(f"{command} ended with status {status}")
    used = usage.ru_utime + usage.ru_stime
    return seconds, used, usage.ru_maxrss // 1024
