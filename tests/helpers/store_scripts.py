"""Scripts in processes whose `gs://` is a store on this machine."""

import json
import os
import pathlib
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
# Runs scripts in one process; prints exit code, output and log of each.
IN_TURN = """
import contextlib, importlib, io, json, sys
from bert.common import main

ended = []
for argv in json.load(sys.stdin):
    out, log = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(log):
        code = main.run(importlib.import_module(argv[0]).main, argv)
    ended.append((code, out.getvalue(), log.getvalue()))
json.dump(ended, sys.stdout)
"""


class Scripts:
    """Runs scripts in processes whose `gs://` is the store."""

    def __init__(self, store, folder):
        self._folder = folder
        retries = {
            "GCS_RETRY_CONFIG_MAX_RETRIES": "3",
            "GCS_RETRY_CONFIG_INIT_DELAY_TIME_US": "100000",
            "GCS_RETRY_CONFIG_MAX_DELAY_TIME_US": "200000",
            "GCS_READ_REQUEST_TIMEOUT_SECS": "2",
            "XDG_STATE_HOME": str(folder),
            "TMPDIR": str(folder),  # nothing else is left on this machine
        }
        self._environment = {
            **os.environ,
            **store.environment(**retries),
            "CUDA_VISIBLE_DEVICES": "-1",
        }

    def start(self, script: str, *words: str, **named) -> subprocess.Popen:
        argv = [sys.executable, str(ROOT / f"{script}.py"), *words]
        argv += [f"--{name}={value}" for name, value in named.items()]
        return subprocess.Popen(
            argv,
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(
        self,
        script: str,
        *words: str,
        code: tuple[int, ...] = (0,),
        **named,
    ) -> tuple[str, str]:
        """Runs a script to its end; returns what it prints and logs."""
        process = self.start(script, *words, **named)
        found = process.communicate(timeout=600)
        out, error = (text.decode() for text in found)
        assert process.returncode in code, error
        return out, error

    def run_in_turn(self, commands: list) -> list[tuple[int, str, str]]:
        """Runs scripts in one process.

        Returns:
            exit code, output and log of each.
        """
        done = subprocess.run(
            [sys.executable, "-c", IN_TURN],
            input=json.dumps(commands),
            cwd=self._folder,
            env={**self._environment, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def kill_at(self, word: str, script: str, *words: str, **named) -> str:
        """Kills a script when it logs a word; returns its log."""
        process = self.start(script, *words, **named)
        log = ""
        for line in process.stderr:
            log += line.decode()
            if word in log:
                process.send_signal(signal.SIGKILL)
                break
        process.communicate()
        assert process.returncode == -signal.SIGKILL, log
        return log
