"""Which devices a run uses."""

import dataclasses

import tensorflow as tf

from errors import UserError


@dataclasses.dataclass(frozen=True)
class Devices:
    """What the flags say of the devices; names are those of the flags."""

    distribution: str = "auto"
    use_tpu: bool = False
    tpu_name: str | None = None
    tpu_zone: str | None = None
    gcp_project: str | None = None
    master: str | None = None


def make_strategy(devices: Devices) -> tf.distribute.Strategy:
    """Makes the strategy that the flags ask for.

    Args:
        devices: with "auto", the TPU if `use_tpu`, all GPUs from two on,
            else one device.

    Raises:
        UserError: there is no such device.
    """
    kind = devices.distribution
    gpus = tf.config.list_logical_devices("GPU")
    if kind == "auto":
        kind = "mirrored" if len(gpus) > 1 else "one_device"
        kind = "tpu" if devices.use_tpu else kind
    if kind == "tpu":
        return _tpu_strategy(devices)
    local = gpus or tf.config.list_logical_devices("CPU")
    if kind == "mirrored":
        return tf.distribute.MirroredStrategy([d.name for d in local])
    return tf.distribute.OneDeviceStrategy(local[0].name)


def per_replica_batch(
    strategy: tf.distribute.Strategy, batch_size: int, flag: str
) -> int:
    """Rows of a global batch that one replica computes.

    Raises:
        UserError: the batch does not divide evenly.
    """
    replicas = strategy.num_replicas_in_sync
    if batch_size % replicas:
        raise UserError(
            f"--{flag}={batch_size}",
            expected=f"a multiple of {replicas}, the number of devices",
        )
    return batch_size // replicas


def _tpu_strategy(devices: Devices) -> tf.distribute.Strategy:
    address = devices.tpu_name or devices.master
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu=address or "local",
            zone=devices.tpu_zone,
            project=devices.gcp_project,
        )
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        return tf.distribute.TPUStrategy(resolver)
    except (ValueError, IndexError, tf.errors.OpError) as error:
        raise UserError(
            f"no TPU at {address or 'this host'}: {error}",
            fix="check --tpu_name, --tpu_zone and --gcp_project, "
            "or leave out --use_tpu",
        ) from None
