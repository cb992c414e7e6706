"""The flags of the devices choose the strategy."""

import pytest
import tensorflow as tf

from errors import UserError
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
def test_no_tpu_is_told_in_one_line(flags):
    with pytest.raises(UserError, match="no TPU at this host") as caught:
        distribution.make_strategy(**flags)
    assert "\n" not in str(caught.value)


def test_the_tpu_is_looked_up_by_the_flags(monkeypatch):
    """The wiring alone: there is no TPU here."""
    asked = {}

    class Resolver:
        def __init__(self, **arguments):
            asked.update(arguments)

    monkeypatch.setattr(
        tf.distribute.cluster_resolver, "TPUClusterResolver", Resolver
    )
    for place, name in (
        (tf.config, "experimental_connect_to_cluster"),
        (tf.tpu.experimental, "initialize_tpu_system"),
    ):
        monkeypatch.setattr(place, name, lambda resolver: None)
    monkeypatch.setattr(
        tf.distribute, "TPUStrategy", lambda resolver: ("tpu", resolver)
    )
    kind, resolver = distribution.make_strategy(
        "auto", True, "my-tpu", "zone-b", "project-c"
    )
    assert kind == "tpu"
    assert isinstance(resolver, Resolver)
    assert asked == {"tpu": "my-tpu", "zone": "zone-b", "project": "project-c"}
