"""Settings of doctor.py; this module does not import TensorFlow."""

import dataclasses

from bert.common import storage
from bert.common.errors import UserError
from bert.common.flags import BaseSettings, flag
from bert.common.rules import at_least_one


@dataclasses.dataclass(frozen=True)
class Settings(BaseSettings):
    """Files to check; at least one is required."""

    RULES = [
        at_least_one(
            "no file to check",
            "input_file",
            "vocab_file",
            "bert_config_file",
            "init_checkpoint",
            "output_dir",
        ),
    ]

    input_file: str | None = flag(
        None,
        "Records to check: files and globs, separated by commas.",
        path=True,
    )
    vocab_file: str | None = flag(
        None, "Vocabulary, one token per line.", path=True
    )
    bert_config_file: str | None = flag(
        None, "JSON file with the sizes of the network.", path=True
    )
    init_checkpoint: str | None = flag(
        None, "Checkpoint: its prefix, such as bert_model.ckpt.", path=True
    )
    output_dir: str | None = flag(
        None, "Folder of a run of run_pretraining.py.", path=True
    )

    def check_folder(self) -> None:
        """Checks that the folder exists; a missing file is a finding.

        Raises:
            UserError: The folder does not exist.
        """
        folder = self.output_dir
        if folder and not storage.is_folder(folder):
            raise UserError(
                "no such folder", path=folder, fix="check --output_dir"
            )
