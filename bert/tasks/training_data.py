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
        source, rows: see `digest_of`.

    Returns:
        the digest of the data.

    Raises:
        UserError: the folder holds a run with other training data.
    """
    digest = digest_of(source, rows)
    check(folder, digest)
    return digest


def digest_of(source: str, rows: str = "") -> str:
    """A part of a sha256 of training data.

    Args:
        source: file of the data.
        rows: a description of those that were drawn from it; "": all.
    """
    content = storage.hash_file(source) + rows
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def check(folder: str, digest: str, holds_out: bool = False) -> None:
    """Checks that a run in output_dir has read the training data.

    Args:
        folder: output_dir.
        digest: see `digest_of`.
        holds_out: whether rows of the file are held out for evaluation. The
            weights of the other run may have been trained on these rows.

    Raises:
        UserError: the folder holds a run with other training data.
    """
    try:
        recorded = checkpoint_files.recorded_settings(folder)
    except UserError:  # damaged: the run resumes from an earlier checkpoint
        recorded = {}

    # Only the digest counts, with which `describe` ends.
    if not str(recorded.get("records", digest)).endswith(digest):
        fix = "pass another --output_dir"
        if not holds_out:
            fix += (
                f", with --init_checkpoint={folder} to start from its weights"
            )
        raise UserError(
            "holds a run with other training data", path=folder, fix=fix
        )


def describe(examples: Examples | None, digest: str) -> str:
    """Describes the data that a run has trained on, for its checkpoints."""
    return f"{len(examples or ())} examples of {digest}"
