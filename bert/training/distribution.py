"""Distribution strategies: the devices of a run."""

import functools
import os

import tensorflow as tf

from bert.common import nvidia, processes, tensorflow_log
from bert.common.errors import UserError
from bert.common.progress import log
from bert.training import cluster, workers

# ARM's bf16, in the line "Features", is not among them: on ARM64, TensorFlow
# 2.21 computes bfloat16 with Eigen, in float32. Without AMX, products of
# Intel's processors in bfloat16 have half the rate of float32.
_FAST_BFLOAT16 = ({"amx_bf16"}, {"avx512_bf16", "AuthenticAMD"})
_FIRST_GPU_WITH_BFLOAT16 = (8, 0)  # compute capability; TensorFloat-32 too


def make_strategy(
    distribution: str = "auto",
    use_tpu: bool = False,
    cluster_timeout: float = 300.0,
    tpu_name: str | None = None,
    tpu_zone: str | None = None,
    gcp_project: str | None = None,
    master: str | None = None,
    num_tpu_cores: int | None = None,
) -> tf.distribute.Strategy:
    """Makes the strategy for the flags and TF_CONFIG.

    Args:
        distribution: str. "one_device", "mirrored", "multi_worker", "tpu" or
            "auto". "auto" selects the TPU with `use_tpu`, several workers if
            TF_CONFIG or SLURM lists them, and all GPUs if there are several.
            Otherwise it selects one device. "mirrored" needs a GPU, or logical
            CPUs as tests configure them. Default: "auto".
        use_tpu: bool. Whether "auto" selects the TPU. Default: False.
        cluster_timeout: float. Seconds to wait for the other workers.
            Default: 300.
        tpu_name, master: str or None. Name or address of the TPU. Default:
            None, the TPU of this host.
        tpu_zone, gcp_project: str or None. Where the name is looked up.
            Default: None, detected.
        num_tpu_cores: int or None. Expected number of cores. Default: None,
            any number.

    Raises:
        UserError: the device does not exist.
        cluster.WorkerLostError: a worker did not start.
    """
    # By default TensorFlow rounds float32 to 11 bits on GPUs.
    tf.config.experimental.enable_tensor_float_32_execution(False)

    name = distribution
    if name == "tpu" or (name == "auto" and use_tpu):
        return _tpu_strategy(
            tpu_name or master, tpu_zone, gcp_project, num_tpu_cores
        )

    check_gpus_are_found()
    processes = cluster.from_flags(distribution, use_tpu)
    if processes:
        return _join(processes, cluster_timeout)

    # Listing the devices starts them, which TensorFlow logs at length.
    with tensorflow_log.held_back():
        gpus = tf.config.list_logical_devices("GPU")
    if name == "auto":
        name = "mirrored" if len(gpus) > 1 else "one_device"
    local = gpus or tf.config.list_logical_devices("CPU")

    if name == "mirrored" and not gpus and len(local) == 1:
        raise UserError(
            "--distribution=mirrored", expected="GPUs", fix="omit the flag"
        )
    if name == "mirrored":
        # On CPUs one process may hold strategies of several sizes, as in
        # tests; collective operations would mix up their groups.
        reduction = None if gpus else tf.distribute.ReductionToOneDevice()
        return tf.distribute.MirroredStrategy(
            [device.name for device in local], reduction
        )

    return tf.distribute.OneDeviceStrategy(local[0].name)


# A process can join a cluster only once.
@functools.cache
def _join(processes: cluster.Cluster, timeout: float) -> tf.distribute.Strategy:
    source = cluster.VARIABLE if os.environ.get(cluster.VARIABLE) else "SLURM"
    me, count = processes.describe(processes.index), len(processes.tasks)
    log(f"{source}: this is {me} of {count} processes")

    workers.join(processes, timeout)
    os.environ[cluster.VARIABLE] = processes.tf_config
    return tf.distribute.MultiWorkerMirroredStrategy()


def check_gpus_are_found() -> None:
    """Raises an error if TensorFlow does not find the GPUs, see `nvidia`.

    Raises:
        UserError: there are GPUs, but their libraries are missing.
    """
    devices = nvidia.visible_gpus()
    if devices and not tf.config.list_physical_devices("GPU"):
        raise UserError(
            f"TensorFlow finds none of {len(devices)} GPUs",
            path=devices[0],
            fix="install their libraries: pip install -r requirements/gpu.txt; "
            "or select the CPU: CUDA_VISIBLE_DEVICES=-1",
        )


def set_determinism(
    strategy: tf.distribute.Strategy, deterministic: bool | None
) -> bool:
    """Selects operations that give the same bits in each run.

    Args:
        strategy: tf.distribute.Strategy. Devices.
        deterministic: bool or None. None selects them with a single device.
            TPUs are not affected.

    Returns:
        Whether deterministic operations are selected.
    """
    if deterministic is None:
        deterministic = strategy.num_replicas_in_sync == 1
    if deterministic:
        tf.config.experimental.enable_op_determinism()
    return deterministic


def check_batch_size(
    strategy: tf.distribute.Strategy,
    batch_size: int,
    flag: str,
    accumulation_steps: int = 1,
) -> None:
    """Checks that a batch divides evenly over the devices.

    Args:
        strategy: tf.distribute.Strategy. Devices.
        batch_size: int. Number of examples in the whole batch.
        flag: str. Name of the flag that sets it, for the message.
        accumulation_steps: int. Micro-batches of each device. Default: 1.

    Raises:
        UserError: the batch does not divide evenly.
    """
    replicas = strategy.num_replicas_in_sync
    if batch_size % (replicas * accumulation_steps):
        expected = f"a multiple of {replicas}, the number of devices"
        if accumulation_steps > 1:
            expected += (
                f", times --gradient_accumulation_steps={accumulation_steps}"
            )
        raise UserError(f"--{flag}={batch_size}", expected=expected)


def is_tpu(strategy: tf.distribute.Strategy) -> bool:
    """Whether the devices are TPUs, which only run static programs."""
    return isinstance(strategy, tf.distribute.TPUStrategy)


def choose_precision(strategy: tf.distribute.Strategy, precision: str) -> str:
    """Resolves the precision "auto" for the devices of a strategy.

    Args:
        strategy: tf.distribute.Strategy. Devices.
        precision: str. "float32", "bfloat16", "float16", "tf32" or "auto".
            "auto" selects bfloat16 if the devices have fast instructions for
            it, else float32. "tf32" enables TensorFloat-32 for this process.

    Returns:
        "float32", "bfloat16", "float16" or "tf32".

    Raises:
        UserError: "tf32" without a GPU that has TensorFloat-32.
    """
    gpus = tf.config.list_physical_devices("GPU")

    if precision == "tf32":
        if not gpus or not all(map(_gpu_has_bfloat16, gpus)):
            raise UserError(
                "--precision=tf32",
                expected="a GPU of compute capability 8.0 or higher",
                fix="pass --precision=float32",
            )
        tf.config.experimental.enable_tensor_float_32_execution(True)
    if precision != "auto":
        return precision

    if is_tpu(strategy):
        is_faster, where = True, "on the TPU"
    elif gpus:
        is_faster, where = all(map(_gpu_has_bfloat16, gpus)), "on the GPU"
    else:
        is_faster = _cpu_has_fast_bfloat16()
        where = "with TensorFlow on this processor"

    chosen = "bfloat16" if is_faster else "float32"
    compared = "is faster" if is_faster else "is not faster"
    log(f"precision {chosen}: bfloat16 {compared} {where}")
    return chosen


def use_xla(strategy: tf.distribute.Strategy, asked: bool | None) -> bool:
    """Whether steps are compiled with XLA.

    Args:
        strategy: tf.distribute.Strategy. Devices.
        asked: bool or None. Value of --use_xla. None enables XLA on GPUs.
            TPUs always use XLA.
    """
    if asked is None or is_tpu(strategy):
        return _kinds(strategy) != {"CPU"}
    return asked


def can_compile_whole(strategy: tf.distribute.Strategy) -> bool:
    """Whether `tf.function` compiles a replica's step with its all-reduce.

    `tf.function` only compiles collective operations for GPUs. `TPUStrategy`
    itself compiles everything that it runs.
    """
    kinds = _kinds(strategy)
    return "TPU" not in kinds and (
        "CPU" not in kinds or strategy.num_replicas_in_sync == 1
    )


def _kinds(strategy: tf.distribute.Strategy) -> set[str]:
    """Types of the devices."""
    return {
        tf.DeviceSpec.from_string(device).device_type
        for device in strategy.extended.worker_devices
    }


def environment(strategy: tf.distribute.Strategy) -> dict[str, str | int]:
    """Versions and devices that affect the last bits of results.

    On CPUs (measured), the version of TensorFlow, the number of threads and
    oneDNN affect them. The number of devices affects them everywhere.
    """
    kinds = _kinds(strategy)
    values = {
        "tensorflow": tf.__version__,
        "device": ", ".join(sorted(kinds)),
        "replicas": strategy.num_replicas_in_sync,
    }

    if kinds == {"CPU"}:
        config = tf.config.threading
        threads = config.get_intra_op_parallelism_threads()
        values["threads"] = threads or processes.num_cores()
        values["onednn"] = os.environ.get("TF_ENABLE_ONEDNN_OPTS", "1")

    for device in tf.config.list_physical_devices("GPU")[:1]:
        details = tf.config.experimental.get_device_details(device)
        values["device"] = details.get("device_name", "GPU")
    return values


def _tpu_strategy(
    address: str | None,
    zone: str | None,
    project: str | None,
    num_tpu_cores: int | None,
) -> tf.distribute.Strategy:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
            tpu=address or "local",
            zone=zone,
            project=project,
        )
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        strategy = tf.distribute.TPUStrategy(resolver)
    except (OSError, ValueError, IndexError, tf.errors.OpError) as error:
        raise UserError(
            f"no TPU at {address or 'this host'}: {error}",
            fix="check --tpu_name, --tpu_zone and --gcp_project, "
            "or omit --use_tpu",
        ) from None

    # A flag of the original code; TensorFlow detects the number.
    cores = strategy.num_replicas_in_sync
    if num_tpu_cores not in (None, cores):
        raise UserError(
            f"--num_tpu_cores={num_tpu_cores}",
            expected=f"{cores}, the cores of this TPU",
            fix="omit the flag: the number is detected",
        )
    return strategy


def describe(
    strategy: tf.distribute.Strategy, precision: str = "", use_xla: bool = False
) -> str:
    """Describes the devices and how they compute, for the log.

    Args:
        strategy: tf.distribute.Strategy. Devices.
        precision: str. Name of the compute precision, if known. Default: "".
        use_xla: bool. Whether XLA compiles the step. Default: False.
    """
    values = environment(strategy)
    parts = [f"device: {values['device']}"]
    if strategy.num_replicas_in_sync > 1:
        kind = type(strategy).__name__.removesuffix("Strategy")
        kind = {"Mirrored": "mirrored", "TPU": "tpu"}.get(kind, "workers")
        parts = [f"devices: {values['replicas']} x {values['device']} ({kind})"]
    if "threads" in values:
        parts.append(f"{values['threads']} threads")
    if precision:
        parts.append(precision)
    if use_xla:
        parts.append("XLA")
    return ", ".join(parts)


def _cpu_has_fast_bfloat16() -> bool:
    words = set(" ".join(processes.cpu_info("flags", "vendor_id")).split())
    return any(needed <= words for needed in _FAST_BFLOAT16)


def _gpu_has_bfloat16(gpu) -> bool:
    details = tf.config.experimental.get_device_details(gpu)
    capability = details.get("compute_capability", (0, 0))
    return capability >= _FIRST_GPU_WITH_BFLOAT16
