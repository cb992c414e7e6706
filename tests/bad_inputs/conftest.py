"""The folder of good files, made once."""

import pytest

from tests.bad_inputs import good_files


@pytest.fixture(scope="session")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    good_files.write(folder)
    return folder
