"""One-line errors if Python is too old or a required package is missing."""

import importlib.util
import os
import sys

_ROOT = os.path.realpath(os.path.join(__file__, "..", "..", ".."))
_OLDEST = (3, 11)


def check_of_script() -> None:
    """Exits from a script of this project if Python or a package is missing.

    In other programs, the import of a missing package fails as usual.
    """
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if not script or os.path.dirname(os.path.realpath(script)) != _ROOT:
        return

    problem = ""
    if sys.version_info < _OLDEST:
        version = ".".join(map(str, sys.version_info[:2]))
        problem = f"{sys.executable} is Python {version}; expected 3.11 to 3.13"
    elif importlib.util.find_spec("absl") is None:
        problem = describe_missing("absl")
    if problem:
        print(f"error: {problem}", file=sys.stderr)
        sys.exit(2)


def describe_missing(name: str) -> str:
    """Returns a message about a missing package, with the command to fix it."""
    package = name.partition(".")[0]
    return (
        f"{sys.executable} has no package {package}; activate the environment "
        f"that has it, or: python -m pip install -r {_ROOT}/requirements.txt"
    )
