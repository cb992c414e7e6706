"""Records without a manifest are read once, by the chief alone."""

import dataclasses
import os

import numpy as np
import pytest

from common import flags
from common.errors import UserError
from data import features
from data.records import reader
from tasks.pretraining import verified
from tasks.pretraining.inputs import Inputs, Phase, Records
from tasks.pretraining.settings import Settings
from tests.helpers import small
from tests.helpers.pretraining_files import write_records
from tests.helpers.small import P, S
from training import workers

SCHEMA = features.pretraining_schema(S, P)


@pytest.fixture
def inputs(tmp_path):
    sets = []
    for name, rows in (("a", 5), ("b", 3), ("held_out", 2)):
        path = tmp_path / f"{name}.tfrecord"
        write_records(path, rows, listed=False)
        sets.append(Records([str(path)], [None], SCHEMA))
    phases = [Phase(x, None, 2, 0, 1) for x in sets[:2]]
    return Inputs(phases, sets[2], None, None, None)


@pytest.fixture
def read(monkeypatch):
    """Names of the files that are read completely, in order."""
    found, original = [], reader.check_records

    def check(path, *others):
        found.append(os.path.basename(path))
        return original(path, *others)

    monkeypatch.setattr(reader, "check_records", check)
    return found


def check(inputs, folder, vocab_size=small.V, **named):
    """Starts a run up to the check; returns the counts of the phases."""
    named = {"eval_steps": 0, **named}
    settings = flags.replace(Settings(), output_dir=str(folder), **named)
    known = verified.Verified(str(folder))
    counts = verified.check_all_records(
        inputs, settings, vocab_size, None, known
    )
    known.save()
    return counts


def test_files_are_read_once_until_they_change(inputs, read, tmp_path):
    inputs = dataclasses.replace(inputs, held_out=None)
    for _ in range(2):
        assert check(inputs, tmp_path, do_train=True) == [5, 3]
    assert read == ["a.tfrecord", "b.tfrecord"]
    os.utime(inputs.phases[1].records.files[0], ns=(1, 1))
    assert check(inputs, tmp_path, do_train=True) == [5, 3]
    assert read[2:] == ["b.tfrecord"]
    assert check(inputs, tmp_path, small.V + 1, do_train=True) == [5, 3]
    assert read[3:] == ["a.tfrecord", "b.tfrecord"]


def test_a_damaged_memory_is_no_memory(inputs, read, tmp_path):
    inputs = dataclasses.replace(inputs, held_out=None)
    check(inputs, tmp_path, do_train=True)
    for text in ("[]", "{", '{"a": 1}'):
        (tmp_path / verified.FILE).write_text(text)
        assert check(inputs, tmp_path, do_train=True) == [5, 3]
    assert read == ["a.tfrecord", "b.tfrecord"] * 4


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ({"do_eval": True}, ["held_out"]),
        # The last step is evaluated, whatever --eval_steps is.
        ({"do_train": True}, ["a", "b", "held_out"]),
        ({"do_train": True, "do_eval": True}, ["a", "b", "held_out"]),
    ],
)
def test_only_what_is_used_is_read(inputs, read, tmp_path, named, expected):
    check(inputs, tmp_path, **named)
    assert read == [f"{name}.tfrecord" for name in expected]


def test_other_workers_do_not_read(inputs, read, tmp_path, monkeypatch):
    inputs = dataclasses.replace(inputs, held_out=None)
    monkeypatch.setattr(workers, "is_chief", lambda: False)

    def gather(strategy, *values):
        return np.array([[5, 3], values])

    monkeypatch.setattr(workers, "gather", gather)
    assert check(inputs, tmp_path, do_train=True) == [5, 3]
    assert read == []


def test_an_error_of_the_chief_ends_all(inputs, tmp_path, monkeypatch):
    inputs = dataclasses.replace(inputs, held_out=None)
    sent = []

    def gather(strategy, *values):
        sent.append(values)
        return np.array([values, [-1, -1]])

    monkeypatch.setattr(workers, "gather", gather)
    with pytest.raises(UserError, match="masked_lm_ids|input_ids"):
        check(inputs, tmp_path, vocab_size=3, do_train=True)
    assert sent == [(-1, -1)]
    monkeypatch.setattr(workers, "is_chief", lambda: False)
    with pytest.raises(UserError, match="the first worker rejected the rec"):
        check(inputs, tmp_path, do_train=True)
