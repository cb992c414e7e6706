"""Packages of an extra: all that are missing, in one line."""

import pytest

from common import extras
from common.errors import UserError
from data.pretraining import runners


def test_all_missing_packages_are_named(hide_package):
    extras.check("serve", "flask", "numpy")
    hide_package("flask")
    with pytest.raises(UserError) as caught:
        extras.check("serve", "numpy", "flask", path="a.parquet")
    assert str(caught.value) == (
        "a.parquet: missing packages: flask; "
        "pip install -r requirements-serve.txt"
    )


def test_a_runner_without_beam_names_its_flag(hide_package):
    hide_package("apache_beam")
    with pytest.raises(UserError, match="^--runner: missing packages: apache"):
        runners.check_beam("DirectRunner")
