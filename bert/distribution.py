"""Build backend: the folders of the checkout as one package, `bert`.

    common/  data/  ...        ->  bert/common/  bert/data/  ...
    run_classifier.py  ...     ->  bert/scripts/run_classifier.py  ...
    from bert.data import features  ->  from bert.data import features

`pip install .` calls `build_wheel` and `build_sdist` (PEP 517). An sdist holds
the checkout as it is; only a wheel is rewritten. This file is not part of it.
"""

import ast
import contextlib
import os
import pathlib
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator

from setuptools import build_meta

ROOT = pathlib.Path(__file__).resolve().parents[1]
NAME = "bert"
_METADATA = ("pyproject.toml", "README.md", "LICENSE")
_NO_PARTS = ("benchmarks", NAME)  # packages that are not moved below `bert`
_SOURCES = (  # of an sdist, besides packages and scripts
    *_METADATA,
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Makefile",
    NAME,
    "benchmarks",
    "configs",
    "docs",
    "examples",
    "requirements",
    "requirements.txt",
    "tests",
)
_UNWANTED = shutil.ignore_patterns("__pycache__", "*.pyc", ".*")


def packages() -> list[str]:
    """Returns the names of the folders that become subpackages."""
    found = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    return sorted(found.difference(_NO_PARTS))


def scripts() -> list[str]:
    """Returns the names of the scripts at the root."""
    return sorted(path.stem for path in ROOT.glob("*.py"))


def rewrite(source: str, packages: Collection[str]) -> str:
    """Moves the imports of a module, and the commands it names, below `bert`.

    Args:
        source: text of a module.
        packages: top-level packages of the checkout.

    Returns:
        the text, with the same number of lines.
    """
    lines = source.split("\n")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            ours = [x.name for x in node.names if _first(x.name) in packages]
            assert not ours, f"line {node.lineno}: write `from ... import`"
        elif isinstance(node, ast.ImportFrom) and not node.level:
            prefix = f"{NAME}." if _first(node.module) in packages else ""
            line = lines[node.lineno - 1]
            lines[node.lineno - 1] = line.replace("from ", f"from {prefix}", 1)
    text = "\n".join(lines)
    commands = rf"(?<![\w/])(?:python )?({'|'.join(scripts())})\.py\b"
    return re.sub(commands, rf"{NAME} \1", text)


def write_package(folder: pathlib.Path) -> None:
    """Writes the package `bert` and its metadata into an empty folder."""
    for name in _METADATA:
        shutil.copy(ROOT / name, folder)
    ours, target = packages(), folder / NAME
    shutil.copytree(ROOT / NAME, target, ignore=_UNWANTED)
    (target / pathlib.Path(__file__).name).unlink()
    shutil.copytree(ROOT / "configs", target / "configs", ignore=_UNWANTED)
    for name in ours:
        shutil.copytree(ROOT / name, target / name, ignore=_UNWANTED)
    (target / "scripts").mkdir()
    (target / "scripts" / "__init__.py").touch()
    for name in scripts():
        shutil.copy(ROOT / f"{name}.py", target / "scripts")
    for path in target.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        path.write_text(rewrite(text, ours), encoding="utf-8")


def write_sources(folder: pathlib.Path) -> None:
    """Writes the sources of the checkout into an empty folder."""
    names = [*_SOURCES, *packages()]
    for name in [*names, *(f"{script}.py" for script in scripts())]:
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, folder / name, ignore=_UNWANTED)
        else:
            shutil.copy(path, folder)
    (folder / "MANIFEST.in").write_text("include *\ngraft *\n")


def build_wheel(
    wheel_directory: str, config_settings=None, metadata_directory=None
) -> str:
    """Builds the wheel; returns its file name."""
    out = os.path.abspath(wheel_directory)
    with _scratch() as folder:
        write_package(folder)
        return build_meta.build_wheel(out, config_settings)


def build_sdist(sdist_directory: str, config_settings=None) -> str:
    """Builds the source distribution; returns its file name."""
    out = os.path.abspath(sdist_directory)
    with _scratch() as folder:
        write_sources(folder)
        return build_meta.build_sdist(out, config_settings)


@contextlib.contextmanager
def _scratch() -> Iterator[pathlib.Path]:
    """Inside, the working directory is a new folder."""
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
    ):
        yield pathlib.Path(folder)


def _first(name: str) -> str:
    return name.split(".")[0]
