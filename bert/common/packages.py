"""The packages and the Python that the scripts need: one line if missing."""

import importlib.util
import os
import sys

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(__file__)))
_ROOT = os.path.realpath(_ROOT)
_OLDEST = (3, 11)
_FIRST = ("absl", "numpy")  # what the scripts import before their first check


def check_of_script() -> None:
    """Ends a script of this project if Python or its packages do not fit.

    In any other program the import of a missing package fails as usual.
    """
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if not script or os.path.dirname(os.path.realpath(script)) != _ROOT:
        return
    if sys.version_info < _OLDEST:
        version = ".".join(map(str, sys.version_info[:2]))
        _end(f"{sys.executable} is Python {version}; expected 3.11 to 3.13")
    for name in _FIRST:
        if importlib.util.find_spec(name) is None:
            _end(describe_missing(name))


def describe_missing(name: str) -> str:
    """Returns a message about a missing package, with the remedy."""
    venv = os.path.join(_ROOT, ".venv")
    install = "python -m pip install -r requirements.txt"

    # The remedy depends on what is there: packages, environment, none.
    if os.path.realpath(sys.prefix) == os.path.realpath(venv):
        fix = f"install the packages: {install}"
    elif os.path.isfile(os.path.join(venv, "bin", "activate")):
        fix = f"activate the environment: source {venv}/bin/activate"
    else:
        fix = (
            f"create the environment: cd {_ROOT} && python3 -m venv .venv && "
            f"source .venv/bin/activate && {install}"
        )
    return f"{sys.executable} has no package {name}; {fix}"


def _end(problem: str) -> None:
    print(f"error: {problem}", file=sys.stderr)
    sys.exit(2)
