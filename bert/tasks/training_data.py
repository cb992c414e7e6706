"""Identity of training data, which must not change when a run resumes."""

import hashlib

from bert.common.errors import UserError
from bert.data.records.examples import Examples
from bert.modeling.formats import checkpoint_files


def identify(
    folder: str, sha256: str, rows: str, holds_out: bool = False
) -> str:
    """Identifies training data, and checks it against a run in output_dir.

    Args:
        folder: str. Output folder of the run.
        sha256: str. SHA-256 hash of the file, in hex.
        rows: str. Description of the rows of a fold; "" for all rows.
        holds_out: bool. Whether other rows of the file are held out for
            evaluation. The weights of the other run may have been trained on
            these rows. Default: False, or True in a fold.

    Returns:
        Digest of the data: part of a SHA-256 hash.

    Raises:
        UserError: the folder contains a run with other training data.
    """
    digest = hashlib.sha256((sha256 + rows).encode()).hexdigest()[:16]
    try:
        recorded = checkpoint_files.recorded_settings(folder)
    except UserError:  # damaged: the run resumes from an earlier checkpoint
        recorded = {}

    # Compare only the digest, which is the end of a description.
    if not str(recorded.get("records", digest)).endswith(digest):
        fix = "pass another --output_dir"
        if not (holds_out or rows):
            fix += (
                f", with --init_checkpoint={folder} to start from its weights"
            )
        raise UserError(
            "holds a run with other training data", path=folder, fix=fix
        )
    return digest


def describe(examples: Examples | None, digest: str) -> str:
    """Describes the data that a run has trained on, for its checkpoints."""
    return f"{len(examples or ())} examples of {digest}"
