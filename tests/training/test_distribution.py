"""The flags of the devices choose the strategy."""

import urllib.error

import pytest
import tensorflow as tf
from tensorflow.python.framework import config

from bert.common import nvidia
from bert.common.errors import UserError
from bert.training import distribution
from bert.training.settings import Training


def test_mirrored_without_gpus_is_rejected(monkeypatch):
    one = tf.config.list_logical_devices("CPU")[:1]
    monkeypatch.setattr(
        tf.config, "list_logical_devices", lambda kind: one * (kind == "CPU")
    )
    with pytest.raises(UserError, match="mirrored; expected GPUs; omit"):
        distribution.make_strategy("mirrored")


@pytest.mark.parametrize(
    ("visible", "found", "count"),
    [
        (None, [], 2),
        ("1,0", [], 2),
        (None, ["a GPU"], 0),
        ("", [], 0),
        ("-1", [], 0),
        ("-1,0", [], 0),
    ],
)
def test_gpus_must_be_found_unless_they_are_hidden(
    monkeypatch, tmp_path, visible, found, count
):
    for name in ("nvidia0", "nvidia1", "nvidiactl"):
        (tmp_path / name).touch()
    monkeypatch.setattr(nvidia, "_FILES", str(tmp_path / "nvidia[0-9]*"))
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: found)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    if not count:
        distribution.check_gpus_are_found()
        return
    message = f"none of {count} GPUs; install .*pip install -r requirements/gpu"
    with pytest.raises(UserError, match=message):
        distribution.make_strategy()


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["GPU:0"], ("OneDevice", "GPU:0")),
        (["GPU:0", "GPU:1"], ("Mirrored", ["GPU:0", "GPU:1"])),
    ],
)
def test_all_gpus_are_used(monkeypatch, names, expected):
    gpus = [tf.config.LogicalDevice(name, "GPU") for name in names]
    monkeypatch.setattr(
        tf.config, "list_logical_devices", lambda kind: gpus * (kind == "GPU")
    )
    for kind in ("OneDevice", "Mirrored"):
        monkeypatch.setattr(
            tf.distribute,
            f"{kind}Strategy",
            lambda devices, *_, kind=kind: (kind, devices),
        )
    assert distribution.make_strategy() == expected


def test_the_devices_are_described(monkeypatch):
    one, four = map(distribution.make_strategy, ("one_device", "mirrored"))
    threads = distribution.environment(one)["threads"]
    assert (
        distribution.describe(one, "float32")
        == f"device: CPU, {threads} threads, float32"
    )
    assert (
        distribution.describe(four, "bfloat16", True)
        == f"devices: 4 x CPU (mirrored), {threads} threads, bfloat16, XLA"
    )
    found = {"device": "NVIDIA H200", "replicas": 4}
    monkeypatch.setattr(distribution, "environment", lambda strategy: found)
    assert (
        distribution.describe(four, "bfloat16", True)
        == "devices: 4 x NVIDIA H200 (mirrored), bfloat16, XLA"
    )


@pytest.mark.parametrize(
    ("kinds", "tpu", "asked", "expected"),
    [
        ("CPU", False, None, False),
        ("GPU", False, None, True),
        ("CPU", False, True, True),
        ("GPU", False, False, False),
        ("TPU", True, None, True),
        ("TPU", True, False, True),
    ],
)
def test_the_device_decides_on_xla(monkeypatch, kinds, tpu, asked, expected):
    monkeypatch.setattr(distribution, "_kinds", lambda strategy: {kinds})
    monkeypatch.setattr(distribution, "is_tpu", lambda strategy: tpu)
    strategy = distribution.make_strategy()
    assert distribution.use_xla(strategy, asked) == expected
    whole = distribution.can_compile_whole(strategy)
    assert whole == (kinds != "TPU")


def test_several_cpus_compile_no_all_reduce():
    four = distribution.make_strategy("mirrored")
    assert not distribution.can_compile_whole(four)
    assert distribution.use_xla(four, None) is False


@pytest.mark.parametrize(
    ("kind", "wanted", "found"),
    [
        ("one_device", None, True),
        ("one_device", False, False),
        ("mirrored", None, False),
        ("mirrored", True, True),
    ],
)
def test_one_device_is_deterministic_by_default(kind, wanted, found):
    strategy = distribution.make_strategy(kind)
    assert distribution.set_determinism(strategy, wanted) == found
    assert config.is_op_determinism_enabled() == found


@pytest.mark.parametrize(
    ("batch", "parts", "fits"),
    [(8, 1, True), (6, 1, False), (24, 3, True), (20, 3, False)],
)
def test_a_batch_must_divide_over_the_devices(batch, parts, fits):
    strategy = distribution.make_strategy("mirrored")
    arguments = (strategy, batch, "train_batch_size", parts)
    if fits:
        distribution.check_batch_size(*arguments)
        return

    message = f"--train_batch_size={batch}; expected a multiple of 4"
    with pytest.raises(UserError, match=message):
        distribution.check_batch_size(*arguments)


def test_a_tpu_whose_name_is_unknown_is_reported_in_one_line(monkeypatch):
    def fail(**named):
        raise urllib.error.URLError("Name or service not known")

    resolvers = tf.distribute.cluster_resolver
    monkeypatch.setattr(resolvers, "TPUClusterResolver", fail)
    with pytest.raises(UserError, match="no TPU at my-tpu: .* not known"):
        distribution.make_strategy(use_tpu=True, tpu_name="my-tpu")


class Tpu:
    """A strategy over a TPU of eight cores that is not there."""

    num_replicas_in_sync = 8

    def __init__(self, resolver):
        self.resolver = resolver


@pytest.fixture
def asked(monkeypatch):
    """Arguments of the resolver; the wiring alone, without a TPU."""
    asked = {}

    class Resolver:
        def __init__(self, **arguments):
            asked.update(arguments)

    for owner, name, stand_in in (
        (tf.distribute.cluster_resolver, "TPUClusterResolver", Resolver),
        (tf.config, "experimental_connect_to_cluster", lambda resolver: None),
        (tf.tpu.experimental, "initialize_tpu_system", lambda resolver: None),
        (tf.distribute, "TPUStrategy", Tpu),
    ):
        monkeypatch.setattr(owner, name, stand_in)
    return asked


@pytest.mark.parametrize(
    ("flags", "address"),
    [
        ({"tpu_name": "my-tpu"}, "my-tpu"),
        ({"master": "grpc://10.1.2.3:8470"}, "grpc://10.1.2.3:8470"),
        ({}, "local"),
    ],
)
def test_the_tpu_is_looked_up_by_the_flags(asked, flags, address):
    strategy = distribution.make_strategy(
        "auto",
        use_tpu=True,
        tpu_zone="zone-b",
        gcp_project="project-c",
        num_tpu_cores=8,
        **flags,
    )
    assert isinstance(strategy, Tpu)
    assert asked == {"tpu": address, "zone": "zone-b", "project": "project-c"}


def test_a_tpu_of_another_size_is_rejected(asked):
    message = "--num_tpu_cores=32; expected 8, the cores of this TPU"
    with pytest.raises(UserError, match=message):
        distribution.make_strategy("tpu", num_tpu_cores=32)


@pytest.mark.parametrize(
    ("chosen", "use_tpu", "is_tpu"),
    [
        ("tpu", False, True),
        ("auto", True, True),
        ("auto", False, False),
        ("one_device", True, False),
    ],
)
def test_a_tpu_takes_no_notice_of_tf_config(
    asked, monkeypatch, chosen, use_tpu, is_tpu
):
    assert Training(distribution=chosen, use_tpu=use_tpu).is_tpu == is_tpu
    monkeypatch.setenv("TF_CONFIG", "{}")
    if chosen == "auto" and not is_tpu:
        with pytest.raises(UserError, match="TF_CONFIG: Object missing"):
            distribution.make_strategy(chosen, use_tpu)
        return
    strategy = distribution.make_strategy(chosen, use_tpu)
    assert isinstance(strategy, Tpu) == is_tpu
