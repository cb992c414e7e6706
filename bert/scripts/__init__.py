"""The scripts: in a checkout they are at its root, in a wheel here."""

import pathlib

_ROOT = pathlib.Path(__file__).resolve().parents[2]
if (_ROOT / "pyproject.toml").is_file():
    __path__.append(str(_ROOT))
