"""Signals and the clock, in processes that import no TensorFlow."""

import signal
import subprocess
import sys

import pytest

from bert.training.preemption import Preemption

PROGRAM = """
import os, signal, sys
from bert.training.preemption import Abandoned, Preemption
def send(name):
    os.kill(os.getpid(), getattr(signal, name))
with Preemption() as preemption:
    {body}
print("went on")
"""


def run(body):
    lines = body.replace("\n", "\n    ")
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(body=lines)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 75), ("SIGINT", 130)])
def test_a_signal_waits_for_the_end_of_the_step(name, code):
    found = run(
        f"send('{name}')\n"
        "print('saved', preemption.request > 1)\n"
        "preemption.end(7, 11)"
    )
    assert found.returncode == code
    assert found.stdout == "saved True\n"
    assert found.stderr == (
        "stopping after this step; a second signal stops at once\n"
        f"stopped at step 7 of 11, which is saved: {name}; the same command "
        "resumes the run; --do_eval runs at its end\n"
    )


@pytest.mark.parametrize("second", ["SIGTERM", "SIGINT"])
def test_a_second_signal_ends_at_once(second):
    found = run(f"send('SIGINT')\nsend('{second}')\nprint('saved')")
    assert found.returncode == -getattr(signal, second)
    assert found.stdout == ""


def test_a_signal_abandons_an_evaluation_only():
    found = run(
        "try:\n"
        "    with preemption.abandoning():\n"
        "        send('SIGTERM')\n"
        "        print('evaluated')\n"
        "except Abandoned:\n"
        "    print('left')\n"
        "try:\n"
        "    with preemption.abandoning():\n"
        "        print('evaluated')\n"
        "except Abandoned:\n"
        "    print('not begun')"
    )
    assert found.stdout == "left\nnot begun\nwent on\n"
    found = run("with preemption.abandoning():\n    pass\nsend('SIGTERM')")
    assert found.stdout == "went on\n"


@pytest.mark.parametrize(
    ("step", "state"), [(7, "which is saved"), (0, "with nothing to save")]
)
def test_the_time_is_up_before_the_last_step(step, state, capsys):
    preemption = Preemption(max_time=0.0)
    assert preemption.request == 1
    preemption.end(11, 11)  # done: not stopped
    with pytest.raises(SystemExit) as caught:
        preemption.end(step, 11)
    assert caught.value.code == 0
    assert capsys.readouterr().err == (
        f"stopped at step {step} of 11, {state}: the time of --max_time is "
        "up; the same command resumes the run; --do_eval runs at its end\n"
    )


@pytest.mark.parametrize(
    ("request_", "code"), [(1, 0), (signal.SIGTERM, 75), (signal.SIGINT, 130)]
)
def test_a_request_of_another_process_is_adopted(request_, code):
    preemption = Preemption(alone=False)
    preemption.adopt(request_)
    assert preemption.request == request_
    with preemption.abandoning():  # the others would wait for ever
        pass
    with pytest.raises(SystemExit) as caught:
        preemption.end(7, 11)
    assert caught.value.code == code


def test_without_a_request_nothing_ends():
    before = signal.getsignal(signal.SIGTERM)
    with Preemption(max_time=1000.0) as preemption:
        assert not preemption.request
        preemption.end(7, 11)
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
