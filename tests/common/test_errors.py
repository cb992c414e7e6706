"""Packages of an extra: all that are missing, in one line."""

import importlib.util
import sys

import pytest

from bert.common import errors
from bert.common.errors import UserError
from bert.common.jobs import runners


def test_all_missing_packages_are_named(monkeypatch):
    errors.check_packages("serve", "flask", "numpy")
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: "found" if name == "numpy" else None,
    )
    with pytest.raises(UserError) as caught:
        errors.check_packages(
            "serve", "flask", "numpy", "waitress", needed_by="--port"
        )
    assert str(caught.value) == (
        "--port: missing packages: flask, waitress; "
        "in the checkout: pip install -r requirements/serve.txt"
    )


def test_a_runner_without_beam_names_its_flag(monkeypatch):
    """Also a Beam that is installed and cannot be imported."""
    monkeypatch.setitem(sys.modules, "apache_beam.runners", None)
    with pytest.raises(UserError, match="^--runner: missing packages: apache"):
        runners.check_beam("DirectRunner")
