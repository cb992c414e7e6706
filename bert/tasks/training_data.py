"""The identity of training data, which a resumed run must have again."""

import hashlib

from bert.common import storage
from bert.common.errors import UserError
from bert.data.records.examples import Examples
from bert.modeling.formats import checkpoint_files


def identify(folder: str, source: str, rows: str = "") -> str:
    """Identifies training data, which a run in output_dir must have read.

    Args:
        folder: output_dir.
        source: file of the data.
        rows: a description of those that were drawn from it; "": all.

    Returns:
        a part of a sha256 of its content.

    Raises:
        UserError: the folder holds a run with other training data.
    """
    content = storage.hash_file(source) + rows
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    try:
        recorded = checkpoint_files.recorded_settings(folder)
    except UserError:  # damaged: the run resumes from an earlier checkpoint
        recorded = {}

    # Only the digest counts, with which `describe` ends.
    if not str(recorded.get("records", digest)).endswith(digest):
        raise UserError(
            "holds a run with other training data",
            path=folder,
            fix=f"pass another --output_dir, with --init_checkpoint={folder} "
            "to start from its weights",
        )
    return digest


def describe(examples: Examples | None, digest: str) -> str:
    """Describes the data that a run has trained on, for its checkpoints."""
    return f"{len(examples or ())} examples of {digest}"
