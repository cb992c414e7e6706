"""Fixtures of several tests of the scripts."""

import numpy as np
import pytest

import doctor
import run_pretraining
from bert.modeling.formats import conversion
from tests.helpers import pretraining_runs


@pytest.fixture
def no_comparison(monkeypatch):
    """Models are converted, but not run."""
    nothing = {"none": np.zeros(1)}
    monkeypatch.setattr(conversion, "outputs_of", lambda bert: nothing)


@pytest.fixture
def diagnose(run_script):
    """Runs doctor; returns (exit code, level -> messages)."""

    def run(*words, **named):
        code, out, err = run_script(doctor, *words, **named)
        lines = out.splitlines()
        found = {"wrong": [], "suspicious": [], "fine": []}
        for line in lines[:-1]:
            level, _, message = line.partition(": ")
            found[level].append(message)
        counts = [f"{len(found[level])} {level}" for level in found]
        assert lines[-1] == ", ".join(counts), err
        return code, found

    return run


@pytest.fixture
def pretrain(tmp_path_factory, run_script):
    """Trains on shared records; returns the output and the errors."""
    folder = pretraining_runs.shared(tmp_path_factory)

    def run(output, *words, code=0, **named):
        named = pretraining_runs.flags_of(folder, output, **named)
        found, out, err = run_script(
            run_pretraining, "--do_train", *words, **named
        )
        assert found == code, err
        return out, err

    return run
