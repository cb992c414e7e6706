"""The scripts: in a checkout they are at its root, in a wheel here."""

import pathlib

__path__.append(str(pathlib.Path(__file__).resolve().parents[2]))
