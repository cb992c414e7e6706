"""NVIDIA GPUs that a program may use, without loading TensorFlow."""

import glob
import importlib.metadata
import os

_FILES = "/dev/nvidia[0-9]*"  # the driver makes one for each GPU
_PACKAGE = "nvidia-cudnn-cu12"  # of `tensorflow[and-cuda]`


def visible_gpus() -> list[str]:
    """Returns the device files of the GPUs.

    The list is empty if CUDA_VISIBLE_DEVICES hides the GPUs: it is empty, or
    starts with -1.
    """
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    return [] if first in ("", "-1") else sorted(glob.glob(_FILES))


def has_usable_gpu() -> bool:
    """Returns whether a GPU is visible and TensorFlow's CUDA is installed."""
    found = importlib.metadata.distributions(name=_PACKAGE)
    return bool(visible_gpus()) and any(found)
