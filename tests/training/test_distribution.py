"""The flags of the devices choose the strategy."""

import pytest
import tensorflow as tf

from common.errors import UserError
from training import distribution


def test_auto_without_gpus_is_one_device():
    strategy = distribution.make_strategy()
    assert isinstance(strategy, tf.distribute.OneDeviceStrategy)
    assert strategy.num_replicas_in_sync == 1


def test_mirrored_takes_all_logical_cpus():
    strategy = distribution.make_strategy("mirrored")
    assert isinstance(strategy, tf.distribute.MirroredStrategy)
    assert strategy.num_replicas_in_sync == 4


@pytest.mark.parametrize(("batch", "fits"), [(8, True), (6, False)])
def test_a_batch_must_divide_over_the_devices(batch, fits):
    strategy = distribution.make_strategy("mirrored")
    if fits:
        distribution.check_batch_size(strategy, batch, "train_batch_size")
        return
    message = "--train_batch_size=6; expected a multiple of 4"
    with pytest.raises(UserError, match=message):
        distribution.check_batch_size(strategy, batch, "train_batch_size")


@pytest.mark.parametrize("flags", [{"distribution": "tpu"}, {"use_tpu": True}])
def test_no_tpu_is_reported_in_one_line(flags):
    with pytest.raises(UserError, match="no TPU at this host") as caught:
        distribution.make_strategy(**flags)
    assert "\n" not in str(caught.value)


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


def test_a_tpu_takes_no_notice_of_tf_config(asked, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "{}")
    assert isinstance(distribution.make_strategy(use_tpu=True), Tpu)
    with pytest.raises(UserError, match="TF_CONFIG: no cluster"):
        distribution.make_strategy()
