"""Which devices a run uses."""

import tensorflow as tf

from errors import UserError


def make_strategy(
    distribution: str = "auto",
    use_tpu: bool = False,
    tpu_name: str | None = None,
    tpu_zone: str | None = None,
    gcp_project: str | None = None,
    master: str | None = None,
) -> tf.distribute.Strategy:
    """Makes the strategy that the flags ask for.

    Args:
        distribution: "one_device", "mirrored", "tpu", or "auto": the TPU if
            `use_tpu`, all GPUs from two on, else one device.
        use_tpu: whether "auto" means the TPU.
        tpu_name, master: name or address of the TPU; neither: this host's.
        tpu_zone, gcp_project: where the name is looked up.

    Raises:
        UserError: there is no such device.
    """
    gpus = tf.config.list_logical_devices("GPU")
    kind = distribution
    if kind == "auto":
        kind = "mirrored" if len(gpus) > 1 else "one_device"
        kind = "tpu" if use_tpu else kind
    if kind == "tpu":
        return _tpu_strategy(tpu_name or master, tpu_zone, gcp_project)
    local = gpus or tf.config.list_logical_devices("CPU")
    if kind == "mirrored":
        # On CPUs one process may hold strategies of several sizes, as tests
        # do; collective operations would mix their groups up.
        reduction = None if gpus else tf.distribute.ReductionToOneDevice()
        return tf.distribute.MirroredStrategy(
            [device.name for device in local], reduction
        )
    return tf.distribute.OneDeviceStrategy(local[0].name)


def check_batch_size(
    strategy: tf.distribute.Strategy, batch_size: int, flag: str
) -> None:
    """Refuses a batch that does not divide evenly over the devices.

    Raises:
        UserError: with the name of the flag.
    """
    replicas = strategy.num_replicas_in_sync
    if batch_size % replicas:
        raise UserError(
            f"--{flag}={batch_size}",
            expected=f"a multiple of {replicas}, the number of devices",
        )


def _tpu_strategy(
    address: str | None, zone: str | None, project: str | None
) -> tf.distribute.Strategy:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu=address or "local",
            zone=zone,
            project=project,
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
