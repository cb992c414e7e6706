"""Whole commands print what their transcripts say.

`python -m tests.helpers.transcripts [NAME ...]` writes the outputs again, for a
review of their diff.
"""

import shutil

import pytest

from tests.helpers import once, transcripts

pytestmark = pytest.mark.slow
PATHS = sorted(transcripts.FOLDER.glob("*.txt"))


@pytest.fixture(scope="module")
def shell():
    with transcripts.Shell() as shell:
        yield shell


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_commands_print_the_same(path, shell, tmp_path, tmp_path_factory):
    files = once.written(
        tmp_path_factory, "transcript_files", transcripts.write_files
    )
    folder = shutil.copytree(files, tmp_path / "work")
    content = path.read_text(encoding="utf-8")
    assert shell.transcript(content, folder) == content
