"""Points of curves in their file."""

import json

import pytest

from bert.common.errors import UserError
from bert.common.formats import curves


def test_an_unfinished_last_line_is_dropped(tmp_path):
    path = tmp_path / "metrics.jsonl"
    points = [{"step": 5 * i, "kind": "train", "loss": i / 7} for i in (1, 2)]
    lines = "".join(json.dumps(point) + "\n" for point in points)
    path.write_text(lines + '{"step": 250, "ki')
    assert curves.read_curves(str(path)) == points


def test_a_line_that_is_no_point_is_named(tmp_path):
    path = tmp_path / "metrics.jsonl"
    for line, found in ((b"", "''"), (b"\xff\xfe", "'\ufffd\ufffd'")):
        path.write_bytes(b'{"step": 5}\n' + line + b"\n")
        message = f"jsonl:2: not a point of a curve: {found}"
        with pytest.raises(UserError, match=message):
            curves.read_curves(str(path))
