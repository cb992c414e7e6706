"""Records without a manifest are read by the chief alone."""

import dataclasses
import os

import numpy as np
import pytest

from bert.common.errors import UserError
from bert.data import feature_names
from bert.data.records import content_check
from bert.data.records.shards import Records, Shard
from bert.runs import pretraining as task
from bert.tasks.pretraining.inputs import Inputs, PhaseInputs
from bert.training import collectives, workers
from tests.helpers import small
from tests.helpers.pretraining_files import write_records
from tests.helpers.small import P, S

SCHEMA = feature_names.pretraining_schema(S, P)


@pytest.fixture
def inputs(tmp_path):
    sets = []
    for name, rows in (("a", 5), ("b", 3), ("held_out", 2)):
        path = tmp_path / f"{name}.tfrecord"
        write_records(path, rows, listed=False)
        sets.append(Records((Shard(str(path)),), SCHEMA))
    phases = [PhaseInputs(x, None, 2, 0, 1) for x in sets[:2]]
    return Inputs(phases, sets[2], small.config(), None)


@pytest.fixture
def read(monkeypatch):
    """Names of the files that are read completely, in order."""
    found, original = [], content_check.check_records

    def check(path, *others):
        found.append(os.path.basename(path))
        return original(path, *others)

    monkeypatch.setattr(content_check, "check_records", check)
    return found


def check(inputs, do_train=True, vocab_size=small.V):
    return task.count_records(inputs, do_train, vocab_size, None)


@pytest.mark.parametrize(
    ("do_train", "expected", "counts"),
    [(False, ["held_out"], []), (True, ["a", "b", "held_out"], [5, 3])],
)
def test_only_what_is_used_is_read(inputs, read, do_train, expected, counts):
    assert check(inputs, do_train) == counts
    assert read == [f"{name}.tfrecord" for name in expected]


def test_other_workers_do_not_read(inputs, read, monkeypatch):
    inputs = dataclasses.replace(inputs, held_out=None)
    monkeypatch.setattr(workers, "is_chief", lambda: False)

    def gather(strategy, *values):
        return np.array([[5, 3], values])

    monkeypatch.setattr(collectives, "gather", gather)
    assert check(inputs) == [5, 3]
    assert read == []


def test_an_error_of_the_chief_ends_all(inputs, monkeypatch):
    inputs = dataclasses.replace(inputs, held_out=None)
    sent = []

    def gather(strategy, *values):
        sent.append(values)
        return np.array([values, [-1, -1]])

    monkeypatch.setattr(collectives, "gather", gather)
    with pytest.raises(UserError, match="masked_lm_ids|input_ids"):
        check(inputs, vocab_size=3)
    assert sent == [(-1, -1)]
    monkeypatch.setattr(workers, "is_chief", lambda: False)
    with pytest.raises(UserError, match="the first worker rejected the rec"):
        check(inputs)
