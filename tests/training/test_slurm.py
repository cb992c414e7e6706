"""SLURM's environment: hosts, ranks, ports, and the end of a job."""

import json
import os
import time

import pytest
import tensorflow as tf

from bert.common.errors import UserError
from bert.training import cluster, distribution, workers
from bert.training.settings import Training

# The second task of node10, of seven.
STEP = {
    "SLURM_STEP_NUM_TASKS": "7",
    "SLURM_STEP_NODELIST": "node[9-10],gpu-a[001,007]",
    "SLURM_STEP_TASKS_PER_NODE": "2(x3),1",
    "SLURM_PROCID": "3",
    "SLURM_NODEID": "1",
    "SLURM_LOCALID": "1",
    "SLURM_JOB_ID": "641",
    "SLURM_STEP_ID": "2",
}
PORT = 12_288 + 64 * (641 + 62 - 640)


@pytest.fixture
def srun(monkeypatch):
    monkeypatch.delenv(cluster.VARIABLE, raising=False)

    def enter(**changed):
        for name, value in {**STEP, **changed}.items():
            monkeypatch.setenv(name, value)

    return enter


@pytest.mark.parametrize(
    ("names", "hosts"),
    [
        ("login", ["login"]),
        ("n[1-2],m5,o[3,6-7]", ["n1", "n2", "m5", "o3", "o6", "o7"]),
        (
            "r[0-1]n[08-10]x",
            [f"r{i}n{j}x" for i in "01" for j in ("08", "09", "10")],
        ),
    ],
)
def test_hosts_are_in_slurms_order(names, hosts):
    assert cluster._hosts(names) == hosts


def test_a_step_is_a_cluster(srun):
    srun()
    found = cluster.from_flags("auto", False)
    names = ["node9"] * 2 + ["node10"] * 2 + ["gpu-a001"] * 2 + ["gpu-a007"]
    ports = [PORT, PORT + 1] * 3 + [PORT]
    addresses = [f"{name}:{port}" for name, port in zip(names, ports)]
    assert list(found.addresses) == addresses
    assert found.describe(found.index) == f"worker 3 (node10:{PORT + 1})"
    assert cluster.from_flags("one_device", False) is None


def test_a_task_joins_its_step(srun, monkeypatch, capsys):
    """The wiring alone: there is one process; an empty TF_CONFIG is none."""
    srun()
    joined = []
    for owner, name, stand_in in (
        (os, "environ", {**os.environ, cluster.VARIABLE: ""}),
        (distribution, "_join", distribution._join.__wrapped__),
        (workers, "join", lambda *given: joined.append(given)),
        (tf.distribute, "MultiWorkerMirroredStrategy", lambda: "all"),
    ):
        monkeypatch.setattr(owner, name, stand_in)
    assert distribution.make_strategy(cluster_timeout=7.0) == "all"
    found = cluster.read(os.environ[cluster.VARIABLE])
    assert joined == [(found, 7.0)]
    line = f"SLURM: this is worker 3 (node10:{PORT + 1}) of 7 processes\n"
    assert capsys.readouterr().err == line


def test_tf_config_comes_first_and_one_task_is_one_process(srun, monkeypatch):
    srun()
    one = {
        "cluster": {"worker": ["a:1"]},
        "task": {"type": "worker", "index": 0},
    }
    monkeypatch.setenv(cluster.VARIABLE, json.dumps(one))
    assert cluster.from_flags("auto", False) is None
    monkeypatch.delenv(cluster.VARIABLE)
    srun(SLURM_STEP_NUM_TASKS="1")
    assert cluster.from_flags("auto", False) is None


def test_tasks_that_are_dealt_out_are_rejected(srun):
    srun(SLURM_NODEID="3", SLURM_LOCALID="0")
    with pytest.raises(UserError, match="task 3 is on gpu-a007; .*=block to"):
        cluster.from_flags("auto", False)
    assert cluster.from_flags("mirrored", False) is None


def test_a_run_stops_before_its_job(monkeypatch):
    monkeypatch.delenv("SLURM_JOB_END_TIME", raising=False)
    assert Training().seconds is None
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    for end, seconds in (("1900", 840.0), ("1030", 0.0)):
        monkeypatch.setenv("SLURM_JOB_END_TIME", end)
        assert Training().seconds == seconds
    for time_, seconds in (("7s", 7.0), ("1.5m", 90.0), ("3h", 10_800.0)):
        assert Training(max_time=time_).seconds == seconds


def test_odd_variables_are_one_line(monkeypatch):
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "2")
    monkeypatch.delenv("SLURM_PROCID", raising=False)
    with pytest.raises(UserError, match="SLURM: KeyError: .*start with srun"):
        cluster.slurm_config()
