"""The lists of packages: the lock file, and what a TPU host needs."""

import pathlib
import re
import tomllib

from packaging import requirements

ROOT = pathlib.Path(__file__).parents[1]


def listed():
    """(name, version) that `make lock` reads."""
    (files,) = re.findall(
        r"^LOCKED = (.+?[^\\])$", (ROOT / "Makefile").read_text(), re.M | re.S
    )
    files = files.replace("\\", "").split()
    text = "\n".join((ROOT / name).read_text() for name in files)
    return set(re.findall(r"^([\w.-]+)==([\w.]+)", text, re.M))


def test_the_lock_file_has_every_listed_package():
    text = (ROOT / "requirements/lock.txt").read_text()
    locked = re.findall(r"^([\w.-]+)==([\w.]+) \\\n    --hash=", text, re.M)
    assert listed() <= set(locked)


def test_the_lock_file_names_no_server():
    text = (ROOT / "requirements/lock.txt").read_text()
    assert "make lock" in text.splitlines()[1]
    for word in ("://", "index-url", "find-links", " @ ", "-e "):
        assert word not in text


def pins(name):
    text = (ROOT / name).read_text()
    return dict(re.findall(r"^([\w.-]+)==([\w.]+)", text, re.M))


def test_a_tpu_host_has_the_packages_of_elsewhere():
    """In the same versions as elsewhere, but for TensorFlow itself."""
    tpu, others = pins("requirements/tpu.txt"), pins("requirements.txt")
    del tpu["tensorflow-tpu"], tpu["libtpu"]
    assert tpu.items() <= others.items()


def test_the_ranges_contain_the_pinned_versions():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    ranges = dict(map(named, project["dependencies"]))
    versions = pins("requirements.txt")
    assert ranges.keys() == versions.keys()
    extras = project["optional-dependencies"]
    names = ("beam", "parquet", "onnx", "report", "demo", "serve")
    for name in (*names, "hub", "openvino", "int8"):
        ranges |= dict(map(named, extras[name]))
        versions |= pins(f"requirements/{name}.txt")
    for name, version in versions.items():
        assert version in ranges[name], name
        older = [x for x in ranges[name] if x.operator == ">="]
        assert len(older) == 1, name


def named(line):
    found = requirements.Requirement(line)
    return found.name, found.specifier
