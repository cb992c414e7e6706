"""The OpenVINO engine: computes outputs of packed batches on a CPU.

    openvino_model.xml, openvino_model.bin -> OpenVINOEngine -> outputs

It runs an exported network without TensorFlow. Its inputs and outputs are those
of the other engine, `keras_engine.KerasEngine`.
"""

import functools
import importlib.util
import json
import os
import platform
import sys
import threading

import numpy as np

from bert.common import errors, nvidia, processes, storage
from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.data import feature_names

FILE, WEIGHTS = "openvino_model.xml", "openvino_model.bin"
PRECISION = ["bert", "precision"]  # key of the precision in the network's file
_HASHES = ["bert", "files"]  # key of the hashes of the folder's other files
PRECISIONS = ("float32", "bfloat16", "int8")
NONE = "none"  # instead of a precision: export no network
FOLDER = "openvino"  # folder of the network in an export


def is_network(folder: str) -> bool:
    """Returns whether a folder has the network's file."""
    return storage.is_file(os.path.join(folder, FILE))


def find(path: str) -> str | None:
    """Returns the folder of a model's network, or None."""
    return next(filter(is_network, (path, os.path.join(path, FOLDER))), None)


def find_default(path: str) -> str | None:
    """Returns the folder of the network that computes a model by default.

    Args:
        path: str. Folder of the model.

    Returns:
        None if Keras computes the model: the folder has no network, OpenVINO
        is not installed, or TensorFlow can use a GPU. A folder that is a
        network itself is always returned.
    """
    network = find(path)
    is_installed = importlib.util.find_spec("openvino") is not None
    is_used = is_installed and not nvidia.has_usable_gpu()
    return network if is_used or network == path else None


def check(precision: str | None, flag: str, num_texts: int) -> None:
    """Checks an export before it is written.

    Args:
        precision: str or None. Precision of the network. None or "none":
            no network is exported.
        flag: str. Name of the flag, for messages.
        num_texts: int. Number of texts to calibrate int8 with.

    Raises:
        UserError: the precision does not exist, int8 has no texts, or packages
            are missing.
    """
    if precision in (None, NONE):
        return
    if precision not in PRECISIONS:
        raise UserError(
            f"{flag}={precision}", expected=f"one of {', '.join(PRECISIONS)}"
        )
    if precision == "int8" and not num_texts:
        raise UserError(f"{flag}=int8 without texts", expected="training texts")
    if precision == "int8":
        errors.check_packages("int8", "openvino", "nncf", needed_by=flag)
    else:
        errors.check_packages("openvino", "openvino", needed_by=flag)


def package():
    """Imports OpenVINO with its telemetry disabled.

    Raises:
        UserError: OpenVINO is not installed.
    """
    errors.check_packages("openvino", "openvino")
    # None, which its type lacks: importing the module fails.
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]

    import openvino

    return openvino


@functools.cache
def _core():
    """The `openvino.Core` of this process.

    Where the CPU has AMX, the first model of a core gives its thread a stack
    for signals, which the end of the core frees. At the end in another thread,
    the next signal would end the process with a segmentation fault.
    """
    core = package().Core()
    core.set_property({"ENABLE_MMAP": False})
    return core


def record_files(model, folder: str) -> None:
    """Records the vocabulary, labels and configs that belong to a network.

    Args:
        model: openvino.Model. The network.
        folder: str. Contains all of these files, and will get the network.
    """
    model.set_rt_info(json.dumps(_hashes(folder)), _HASHES)


def _hashes(folder: str) -> dict[str, str]:
    """Hashes of a folder's files, by name, without the network's two files."""
    names = {
        os.path.relpath(path, folder): path
        for path in storage.files_below(folder)
    }
    return {
        name: storage.hash_file(path)
        for name, path in sorted(names.items())
        if name not in (FILE, WEIGHTS)
    }


class OpenVINOEngine:
    """Engine that computes outputs with OpenVINO; several threads may call it.

    Its weights are read into memory, so the files may change afterwards.

    Args:
        folder: str. Folder with the network's two files.
        num_threads: int or None. Number of threads. Default: None, one per
            core.

    Attributes:
        path: str. Path of the .xml file.
        inputs: list of str. Names of the network's inputs.
        description: str. Version, precision and number of threads.

    Raises:
        UserError: a file is missing, damaged or was changed after the export,
            or OpenVINO is not installed; or see `processes.check_not_forked`.
    """

    def __init__(self, folder: str, num_threads: int | None = None):
        processes.check_not_forked(processes.OPENVINO)
        openvino = package()
        self.path = os.path.join(folder, FILE)

        core = _core()
        threads = num_threads or processes.num_cores()
        try:
            model = core.read_model(*self._contents(folder))
            precision = model.get_rt_info(PRECISION).value
            is_half = precision == "bfloat16" and "BF16" in core.get_property(
                "CPU", "OPTIMIZATION_CAPABILITIES"
            )

            # Without the hint, float32 would be computed in bfloat16.
            options = {
                "INFERENCE_PRECISION_HINT": "bf16" if is_half else "f32",
                "INFERENCE_NUM_THREADS": threads,
                "PERFORMANCE_HINT": "LATENCY",
                "NUM_STREAMS": 1,
            }

            # Several processes would be pinned to the same cores.
            if num_threads is not None:
                options["ENABLE_CPU_PINNING"] = False

            # On ARM, the products of int8 are wrong (OpenVINO 2026.4): compute
            # the rounded values in float32.
            if platform.machine() != "x86_64":
                options["LP_TRANSFORMS_MODE"] = False
            compiled = core.compile_model(model, "CPU", options)
        except RuntimeError as error:
            raise self._explained("loaded", error) from None

        _check_finite(model, os.path.join(folder, WEIGHTS))
        if model.has_rt_info(_HASHES):
            recorded = model.get_rt_info(_HASHES).value
            with json_files.reported(self.path):
                hashes = json_files.decode(recorded, dict[str, str])
            _check_files(folder, hashes)

        self.inputs = [port.any_name for port in compiled.inputs]
        if feature_names.SEQUENCE_IDS not in self.inputs:
            raise UserError(
                "a network of an earlier version",
                path=self.path,
                fix="export the model again",
            )
        self.description = (
            f"OpenVINO {openvino.get_version().partition('-')[0]}, "
            f"{precision}, {threads} threads"
        )
        self._request = compiled.create_infer_request()
        self._turn = threading.Lock()  # one request uses all threads

    def _contents(self, folder: str) -> list:
        """The two files: paths if local, contents if remote."""
        paths = [self.path, os.path.join(folder, WEIGHTS)]
        for path in paths:
            if not storage.is_file(path):
                raise UserError("no such file", path=path, fix="copy it, too")

        if not storage.is_remote(folder):
            return paths
        contents = []
        for path in paths:
            with storage.open_file(path, "rb") as file:
                contents.append(file.read())
        return contents

    def _explained(self, done: str, error: RuntimeError) -> UserError:
        cause = str(error).strip().splitlines()[-1]
        return UserError(
            f"cannot be {done}: {cause}", path=self.path, fix="export it again"
        )

    def __call__(self, inputs: dict[str, np.ndarray]) -> np.ndarray:
        """Computes the outputs of a packed batch; see `keras_engine`.

        Args:
            inputs: dict. Name -> int32 array, for at least `self.inputs`.

        Raises:
            UserError: the inputs do not fit the network, which is damaged; or
                see `processes.check_not_forked`.
        """
        processes.check_not_forked(processes.OPENVINO)
        given = {name: inputs[name] for name in self.inputs}
        try:
            with self._turn:
                found = self._request.infer(given, share_inputs=True)
                (output,) = found.values()
        except RuntimeError as error:
            raise self._explained("run", error) from None
        return output


def _check_finite(model, path: str) -> None:
    for operation in model.get_ops():
        if operation.get_type_name() == "Constant":
            weights = operation.data
            if weights.dtype.kind == "f" and not np.isfinite(weights).all():
                raise UserError(
                    "weights that are NaN or infinite",
                    path=path,
                    fix="export a checkpoint with finite weights",
                )


def _check_files(folder: str, recorded: dict[str, str]) -> None:
    found = _hashes(folder)
    for name, expected in recorded.items():
        path = os.path.join(folder, name)
        if name not in found:
            raise UserError("no such file", path=path, fix="copy it, too")
        if found[name] != expected:
            raise UserError(
                "was changed after the export",
                path=path,
                expected=f"the file that {FILE} was written with",
                fix="copy the folder again, or export again",
            )
