"""TF_CONFIG, the start of a cluster, and lost workers."""

import contextlib
import json
import socket
import threading
import types

import pytest

from bert.common.errors import UserError
from bert.training import cluster
from bert.training.cluster import Cluster, WorkerLostError

THREE = ["10.0.0.1:2222", "10.0.0.2:2223", "host-c:2224"]


def config(workers=THREE, kind="worker", index=0, **jobs):
    task = {"type": kind, "index": index}
    return json.dumps({"cluster": {"worker": workers, **jobs}, "task": task})


def test_the_first_worker_is_the_chief():
    found = cluster.read(config(index=1))
    assert found == Cluster(
        ("worker 0", "worker 1", "worker 2"), tuple(THREE), 1
    )
    assert not found.is_chief
    assert cluster.read(config(index=0)).is_chief


def test_a_chief_comes_before_the_workers():
    found = cluster.read(config(index=1, chief=["[::1]:2225"]))
    assert found.tasks == ("chief 0", "worker 0", "worker 1", "worker 2")
    assert found.describe(found.index) == "worker 1 (10.0.0.2:2223)"
    assert cluster._split(found.addresses[0]) == ("::1", 2225)
    assert cluster.read(config(kind="chief", chief=["[::1]:2225"])).is_chief


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "TF_CONFIG: JSON is incomplete; expected {"),
        (
            '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker"}}',
            "TF_CONFIG: Object missing required field `index`",
        ),
        (
            config(index=3),
            "TF_CONFIG: the task is worker 3; expected one of worker 0, "
            "worker 1, worker 2",
        ),
        (config(["a"]), "TF_CONFIG: Expected `str` matching regex"),
        (config(["a:1", "a:1"]), "TF_CONFIG: an address occurs twice"),
    ],
)
def test_mistakes_in_tf_config_are_reported_in_one_line(text, message):
    with pytest.raises(UserError) as caught:
        cluster.read(text)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_other_jobs_and_keys_are_ignored():
    text = json.loads(config(index=1, chief=["d:1"], ps=["e:1"]))
    text["task"]["trial"] = text["environment"] = "cloud"
    found = cluster.read(json.dumps(text))
    assert found.tasks == ("chief 0", "worker 0", "worker 1", "worker 2")
    assert cluster.read(found.tf_config) == found
    assert "e:1" not in found.tf_config


@pytest.mark.parametrize("kind", ["ps", "evaluator"])
def test_who_has_no_part_in_the_training_ends_well(kind, capsys):
    with pytest.raises(SystemExit, match="0"):
        cluster.read(config(kind=kind, index=2))
    assert capsys.readouterr().err == (
        f"TF_CONFIG: {kind} 2 does not take part in the training\n"
    )


@pytest.mark.parametrize(
    ("flags", "workers"),
    [
        (("auto", False), True),
        (("multi_worker", False), True),
        (("auto", True), False),
        (("one_device", False), False),
        (("mirrored", False), False),
        (("tpu", False), False),
    ],
)
def test_flags_say_whether_tf_config_counts(monkeypatch, flags, workers):
    monkeypatch.setenv("TF_CONFIG", config())
    assert (cluster.from_flags(*flags) is not None) == workers


def test_one_worker_alone_is_one_process(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", config(["a:1"]))
    assert cluster.from_flags("auto", False) is None
    assert cluster.from_flags("multi_worker", False).is_chief
    monkeypatch.delenv("TF_CONFIG")
    assert cluster.from_flags("auto", False) is None
    with pytest.raises(UserError, match="multi_worker without TF_CONFIG"):
        cluster.from_flags("multi_worker", False)


@pytest.fixture
def ports():
    """Three ports that are free."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
    found = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return found


def members(ports):
    addresses = tuple(f"127.0.0.1:{port}" for port in ports)
    tasks = tuple(f"worker {i}" for i in range(len(ports)))
    return [Cluster(tasks, addresses, i) for i in range(len(ports))]


def meet(those, timeout):
    """Each in a thread; returns the error of each, or None.

    Then a server has its port, as that of TensorFlow.
    """
    found = [None] * len(those)
    servers = contextlib.ExitStack()
    ports_of = [int(x.addresses[x.index].split(":")[1]) for x in those]

    def run(i):
        try:
            cluster.meet(those[i], timeout)
            server = socket.create_server(("", ports_of[i]))
            servers.enter_context(server)
        except (UserError, WorkerLostError) as error:
            found[i] = str(error)

    threads = [
        threading.Thread(target=run, args=[i]) for i in range(len(found))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    servers.close()
    return found


def test_all_meet_and_their_ports_are_free_again(ports):
    assert meet(members(ports), 30.0) == [None] * 3


def test_the_missing_worker_is_told_every_ten_seconds(
    ports, monkeypatch, capsys
):
    seconds = iter(range(0, 44, 4))  # of each look
    clock = types.SimpleNamespace(
        monotonic=seconds.__next__, sleep=lambda seconds: None
    )
    monkeypatch.setattr(cluster, "time", clock)
    with (
        socket.create_server(("127.0.0.1", ports[2])),
        pytest.raises(WorkerLostError) as caught,
    ):
        cluster.meet(members(ports)[0], 25.0)
    absent = f"worker 1 (127.0.0.1:{ports[1]})"
    message = f"{absent} did not start within 25 s (--cluster_timeout)"
    assert str(caught.value) == message
    assert capsys.readouterr().err == f"waiting for {absent}\n" * 2


def test_a_port_in_use_is_reported(ports):
    with socket.create_server(("", ports[1])):
        (error,) = meet(members(ports)[1:2], 1.0)
    assert error == (
        f"port {ports[1]} of worker 1: Address already in use; expected a "
        "port that no process uses; end the process that uses it, or change "
        "TF_CONFIG"
    )


def test_the_dead_are_known_by_their_closed_ports(ports):
    everybody = members(ports)
    with socket.create_server(("127.0.0.1", ports[1])):
        assert everybody[0].unreachable() == [
            f"worker 2 (127.0.0.1:{ports[2]})"
        ]


def test_who_has_only_passed_a_message_on_is_not_lost():
    passed_on = (
        "Additional GRPC error information from remote target "
        "/job:worker/replica:0/task:0 while calling /tensorflow.WorkerService"
    )
    message = (
        "Error reported from /job:worker/task:2: (stopped sending heartbeats): "
        f"/job:worker/replica:0/task:2 {passed_on}"
    )
    found = cluster.read(config(index=1))
    assert found.named_in(message) == ["worker 2 (host-c:2224)"]
    assert found.named_in(passed_on) == ["worker 0 (10.0.0.1:2222)"]
    assert cluster.read(config(index=2)).named_in(message) == []
