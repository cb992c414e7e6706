"""Children of a process, and waits for the end of processes."""

import os
import pathlib
import select
import signal
import subprocess


def children(pid: int) -> list[int]:
    """Process ids of the children of a process."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(path.parent.name))
    return found


def wait_for_end(handle: int, seconds: float = 60) -> bool:
    """Whether the process of a pidfd ends in time."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(1000 * seconds))


class Orphans:
    """The children of a process that is about to be killed.

    Args:
        pid: the process.
    """

    def __init__(self, pid: int):
        self._handles = []
        for child in children(pid):
            try:
                self._handles.append(os.pidfd_open(child))
            except ProcessLookupError:  # it has ended meanwhile
                continue

    def __len__(self):
        return len(self._handles)

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to those that have not ended."""
        for handle in self._handles:
            try:
                signal.pidfd_send_signal(handle, number)
            except ProcessLookupError:
                continue

    def end(self, seconds: float = 60) -> bool:
        """Whether all of them end in time."""
        ends = [wait_for_end(handle, seconds) for handle in self._handles]
        for handle in self._handles:
            os.close(handle)
        return all(ends)


def kill_after(
    seconds: float, process: subprocess.Popen, group: bool
) -> bool | None:
    """Kills a process after some time, and waits for the end of all it started.

    Args:
        seconds: time until the kill.
        process: the leader of its process group.
        group: whether to kill the whole group instead of the process alone.

    Returns:
        whether the kill ended it; None: it had ended before.
    """
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        orphans = Orphans(process.pid)
        if group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        killed = process.wait() == -signal.SIGKILL
        assert orphans.end(), "a process was left"
        return killed
    return None
