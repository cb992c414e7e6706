"""The training and evaluation curves of a run, read from `metrics.jsonl`."""

import json
import math

from bert.common import storage
from bert.common.errors import UserError


def read_curves(path: str) -> list[dict]:
    """Reads `metrics.jsonl`.

    Returns:
        list of dict. The points, with NaN for null. An unfinished last line,
        which a killed run may leave, is dropped.

    Raises:
        UserError: A line is not a point.
    """
    with storage.open_text(path, errors="replace") as file:
        lines = file.read().split("\n")[:-1]
    points = []
    for number, line in enumerate(lines, start=1):
        try:
            point = {
                name: math.nan if value is None else value
                for name, value in json.loads(line).items()
            }
            points.append({**point, "step": int(point["step"])})
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UserError(
                f"not a point of a curve: {line[:50]!r}",
                path=path,
                line=number,
            ) from None
    return points
