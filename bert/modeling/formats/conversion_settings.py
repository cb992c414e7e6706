"""Settings of convert_checkpoint.py; does not import TensorFlow."""

import dataclasses
from collections.abc import Iterator

from bert.common import extras, outputs
from bert.common.errors import UserError, raised_by
from bert.common.flags import flag, group
from bert.modeling.formats.model_card import CardFlags
from bert.modeling.formats.model_folder import ModelFiles

TARGETS = ("google", "huggingface")  # formats that can be read again
# Formats that only contain the network, and the packages that they need.
NETWORKS = {
    "onnx": ("tf2onnx", "onnx", "onnxruntime"),
    "litert": (),
    "openvino": ("openvino",),
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of convert_checkpoint.py."""

    target: str | None = flag(
        None,
        "Format of the output.",
        name="to",
        choices=(*TARGETS, *NETWORKS),
        required=True,
    )
    input: str | None = flag(
        None,
        "Folder, name or checkpoint prefix of the model.",
        required=True,
        path=True,
    )
    output: str | None = flag(
        None, "Folder to write to.", required=True, path=True
    )
    files: ModelFiles = group(
        ModelFiles,
        bert_config_file={"help": "Default: beside the input."},
        vocab_file={"help": "Default: beside the input."},
    )
    extend_vocab: str | None = flag(
        None, "File of words to add, one per line.", path=True
    )
    card: CardFlags = group(CardFlags)

    def mistakes(self) -> Iterator[UserError]:
        """Yields an error for a missing package, or an output with files."""
        needed = NETWORKS.get(self.target, ())
        yield from raised_by(
            extras.check, self.target, *needed, what=f"--to={self.target}"
        )
        if self.output is not None:
            yield from raised_by(
                outputs.check_new_folder, self.output, "pass another --output"
            )
