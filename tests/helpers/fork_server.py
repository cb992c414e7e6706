"""Starts functions in processes that need not import TensorFlow again.

    client                   server, which has imported all but started nothing
    {"call", "args"}  ---->  fork: the call, in a process of its own
                      <----  its process id
                      <----  its exit code, when it has ended

A process is forked before TensorFlow's runtime has any threads.
"""

import importlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

FOLDER = pathlib.Path(__file__).parents[2]  # current folder of the processes


class ForkServer:
    """Runs one process after the other; a context manager.

    Args:
        modules: names of modules to import once.
        **environment: more environment variables of the processes.
    """

    def __init__(self, *modules: str, **environment: str):
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.helpers.fork_server", *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
            cwd=FOLDER,
        )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._server.stdin.close()
        self._server.wait()

    def start(self, call: str, *args, log: str) -> int:
        """Starts a process.

        Args:
            call: "module:function".
            args: JSON values.
            log: path of the file for its output.

        Returns:
            its process id.
        """
        open(log, "wb").close()
        job = {"call": call, "args": args, "log": str(log)}
        self._server.stdin.write(json.dumps(job) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())

    def wait(self) -> int:
        """The exit code of the process, or the negative signal."""
        return int(self._server.stdout.readline())

    def kill_after(
        self,
        pid: int,
        log: str,
        text: str,
        seconds: float,
        number=signal.SIGKILL,
    ) -> int:
        """Sends a signal some time after a text was printed.

        Returns:
            the exit code; the process may have ended before.
        """
        while text not in pathlib.Path(log).read_text(encoding="utf-8"):
            if not is_running(pid):
                return self.wait()
            time.sleep(0.002)
        time.sleep(seconds)
        if is_running(pid):
            os.kill(pid, number)
        return self.wait()


def is_running(pid: int) -> bool:
    """Whether a process has not ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def serve(modules: list[str]) -> None:
    """Serves calls until standard input ends."""
    for module in modules:
        importlib.import_module(module)
    for line in sys.stdin:
        job = json.loads(line)
        pid = os.fork()
        if pid == 0:
            log = os.open(job["log"], os.O_WRONLY | os.O_APPEND)
            os.dup2(log, 1)
            os.dup2(log, 2)
            module, function = job["call"].split(":")
            call = getattr(importlib.import_module(module), function)
            os._exit(call(*job["args"]) or 0)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1:])
