"""Precision of training and of exported models."""

import contextlib
from collections.abc import Iterator

import keras

from bert.common.errors import UserError
from bert.common.progress import say

_CPU_INFO = "/proc/cpuinfo"
_BFLOAT16_INSTRUCTIONS = {"avx512_bf16", "amx_bf16"}
_FIRST_GPU_WITH_BFLOAT16 = (8, 0)  # compute capability; TensorFloat-32 too


def choose(precision: str, strategy) -> str:
    """Resolves the precision "auto" for the devices of a strategy.

    Args:
        precision: "float32", "bfloat16", "float16", "tf32" or "auto":
            bfloat16 if the devices have instructions for it, else float32.
            With tf32 TensorFlow uses TensorFloat-32 from now on.
        strategy: the `tf.distribute.Strategy`.

    Returns:
        "float32", "bfloat16", "float16" or "tf32".

    Raises:
        UserError: there is no GPU with TensorFloat-32.
    """
    import tensorflow as tf

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

    # bfloat16 pays only where the hardware computes in it.
    if isinstance(strategy, tf.distribute.TPUStrategy):
        has, where = True, "the TPU"
    elif gpus:
        has, where = all(map(_gpu_has_bfloat16, gpus)), "the GPU"
    else:
        has, where = _cpu_has_bfloat16(), "the processor"

    chosen = "bfloat16" if has else "float32"
    say(f"precision {chosen}: {where} has {'' if has else 'no '}bfloat16")
    return chosen


def computing_in(precision: str) -> contextlib.AbstractContextManager[None]:
    """Context in which new layers get a compute precision.

    Their variables stay float32. Layers made later or before are not affected.

    Args:
        precision: "float32", "bfloat16", "float16" or "tf32".
    """
    mixed = precision not in ("float32", "tf32")
    return stored_in(f"mixed_{precision}" if mixed else "float32")


@contextlib.contextmanager
def stored_in(precision: str) -> Iterator[None]:
    """Context in which new layers store their weights in a precision.

    They also compute in it, except for sums, norms and softmax.

    Args:
        precision: a dtype's name.
    """
    # Keras reads its global policy when a layer is made, and not again.
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(precision)
    try:
        yield
    finally:
        keras.config.set_dtype_policy(before)


def _cpu_has_bfloat16() -> bool:
    try:
        with open(_CPU_INFO, encoding="utf-8") as file:
            return any(
                _BFLOAT16_INSTRUCTIONS & set(line.split())
                for line in file
                if line.startswith("flags")
            )
    except OSError:  # not Linux
        return False


def _gpu_has_bfloat16(gpu) -> bool:
    import tensorflow as tf

    details = tf.config.experimental.get_device_details(gpu)
    capability = details.get("compute_capability", (0, 0))
    return capability >= _FIRST_GPU_WITH_BFLOAT16
