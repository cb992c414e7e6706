"""Oversized JSON is rejected before it fills the memory."""

import gzip

import pytest

from common import flags
from common.errors import UserError
from tasks.squad import examples, metrics
from tasks.squad.settings import Settings as SquadSettings


def rejection(read, path, content):
    path.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read(str(path))
    return str(caught.value).removeprefix(f"{path}")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_the_megabytes_of_squad_are_a_flag(tmp_path, capsys, pack):
    path = tmp_path / "a.json"
    content = pack(b'["' + b"a" * 1_000_000 + b'"]')
    for read in (
        lambda path: examples.read(path, max_json_mb=1),
        lambda path: examples.read_files(
            flags.replace(
                SquadSettings(), train_file=path, do_train=True, max_json_mb=1
            )
        ),
    ):
        assert rejection(read, path, content) == (
            ": more than 1,000,000 bytes; split the file, or pass a larger "
            "--max_json_mb"
        )
    path.write_text("{}")
    assert metrics.main(["a", str(path), str(path), "--max_json_mb=0"]) == 2
    assert ": more than 0 bytes" in capsys.readouterr().err
