"""Settings of convert_checkpoint.py; does not import TensorFlow."""

import dataclasses

from bert.common import errors, outputs
from bert.common.flags import changed, flag
from bert.modeling.formats.model_card import CardFlags
from bert.modeling.formats.model_folder import ModelFiles

TARGETS = ("google", "huggingface")  # formats that can be read again
# Formats that only contain the network, and the packages that they need.
NETWORKS = {
    "onnx": ("tf2onnx", "onnx", "onnxruntime"),
    "openvino": ("openvino",),
}


def _check_packages(target: str) -> None:
    """Raises a UserError if a format needs a package that is missing."""
    errors.check_packages(
        target, *NETWORKS.get(target, ()), needed_by=f"--to={target}"
    )


@dataclasses.dataclass(frozen=True)
class Settings(ModelFiles, CardFlags):
    """Settings of convert_checkpoint.py."""

    to: str = flag(
        None,
        "Format of the output.",
        choices=(*TARGETS, *NETWORKS),
        parse=_check_packages,
        required=True,
    )
    input: str = flag(
        None,
        "Folder, name or checkpoint prefix of the model.",
        required=True,
        path=True,
    )
    output: str = flag(
        None,
        "Folder to write to.",
        required=True,
        path=True,
        parse=lambda path: outputs.check_new_folder(
            path, "pass another --output"
        ),
    )
    bert_config_file: str | None = changed(
        ModelFiles, "bert_config_file", help="Default: beside the input."
    )
    vocab_file: str | None = changed(
        ModelFiles, "vocab_file", help="Default: beside the input."
    )
    extend_vocab: str | None = flag(
        None, "File of words to add, one per line.", path=True
    )
