"""Paths of the scripts and configs, in the checkout and when installed."""

import pathlib

_HERE = pathlib.Path(__file__).resolve().parent
# The library has them inside this package; the checkout beside it.
IS_INSTALLED = (_HERE / "scripts").is_dir()
SCRIPTS = _HERE / "scripts" if IS_INSTALLED else _HERE.parent
CONFIGS = (_HERE if IS_INSTALLED else _HERE.parent) / "configs"
