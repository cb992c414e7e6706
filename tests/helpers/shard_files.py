"""A TFRecord file of given records."""

import hashlib
import pathlib

from data.records import frames


def write(path: str, records: list[bytes]) -> dict:
    """Writes records; returns their entry in a manifest."""
    content = frames.join(records)
    pathlib.Path(path).write_bytes(content)
    return {
        "records": len(records),
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
