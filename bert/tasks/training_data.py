"""Identity of training data, which must not change when a run resumes."""

import hashlib

from bert.common.errors import UserError
from bert.data.records.examples import Examples
from bert.modeling.formats import checkpoint_files


def identify(folder: str, sha256: str) -> str:
    """Identifies training data, and checks it against a run in output_dir.

    Args:
        folder: str. Output folder of the run.
        sha256: str. See `digest_of`.

    Returns:
        Digest of the data.

    Raises:
        UserError: the folder contains a run with other training data.
    """
    digest = digest_of(sha256)
    check(folder, digest)
    return digest


def digest_of(sha256: str, rows: str = "") -> str:
    """Part of a SHA-256 hash of training data.

    Args:
        sha256: str. SHA-256 hash of the file, in hex.
        rows: str. Description of the rows that are used. Default: "", all.
    """
    return hashlib.sha256((sha256 + rows).encode()).hexdigest()[:16]


def check(folder: str, digest: str, holds_out: bool = False) -> None:
    """Checks that a run in output_dir was trained on this data.

    Args:
        folder: str. Output folder of the run.
        digest: str. See `digest_of`.
        holds_out: bool. Whether rows of the file are held out for evaluation.
            The weights of the other run may have been trained on these rows.
            Default: False.

    Raises:
        UserError: the folder contains a run with other training data.
    """
    try:
        recorded = checkpoint_files.recorded_settings(folder)
    except UserError:  # damaged: the run resumes from an earlier checkpoint
        recorded = {}

    # Compare only the digest, which is the end of a description.
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
