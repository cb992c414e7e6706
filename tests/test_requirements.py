"""The lists of packages: the lock file, and what a TPU host needs."""

import pathlib
import re
import sys

from tests.helpers import imports

ROOT = pathlib.Path(__file__).parents[1]


def listed():
    """(name, version) that `make lock` reads."""
    (files,) = re.findall(
        r"^LOCKED = (.+?[^\\])$", (ROOT / "Makefile").read_text(), re.M | re.S
    )
    files = files.replace("\\", "").split()
    assert len(files) == 5
    text = "\n".join((ROOT / name).read_text() for name in files)
    return set(re.findall(r"^([\w.-]+)==([\w.]+)", text, re.M))


def test_the_lock_file_has_every_listed_package():
    text = (ROOT / "requirements/lock.txt").read_text()
    locked = re.findall(r"^([\w.-]+)==([\w.]+) \\\n    --hash=", text, re.M)
    assert len(listed()) > 15
    assert listed() <= set(locked)


def test_the_lock_file_names_no_server():
    text = (ROOT / "requirements/lock.txt").read_text()
    assert "make lock" in text.splitlines()[1]
    for word in ("://", "index-url", "find-links", " @ ", "-e "):
        assert word not in text


# Name of the import -> package, where they differ.
PACKAGES = {
    "absl": "absl-py",
    "google_crc32c": "google-crc32c",
    "sklearn": "scikit-learn",
    "tensorflow": "tensorflow-tpu",
}
# Not on TPU hosts: for exports, reports, tables and other formats, imported
# late; and the protobuf that TensorFlow brings.
ELSEWHERE = {
    "google",
    "jinja2",
    "markupsafe",
    "matplotlib",
    "onnxruntime",
    "pyarrow",
    "safetensors",
    "tensorflow_text",
    "tf2onnx",
}
TRAINING = ("pretraining", "classifier", "squad", "ner", "swag")


def pins(name):
    text = (ROOT / name).read_text()
    return dict(re.findall(r"^([\w.-]+)==([\w.]+)", text, re.M))


def test_training_finds_its_packages_on_a_tpu_host():
    """In the same versions as elsewhere, but for TensorFlow itself."""
    imported = {
        name.partition(".")[0]
        for task in TRAINING
        for path in imports.reached(f"run_{task}.py")
        for name in imports.imported(imports.tree_of(path))
    }
    theirs = {
        PACKAGES.get(name, name)
        for name in imported - sys.stdlib_module_names - ELSEWHERE
        if not (ROOT / name).exists() and not (ROOT / f"{name}.py").exists()
    }
    tpu, others = pins("requirements/tpu.txt"), pins("requirements.txt")
    assert theirs == set(tpu) - {"libtpu"}
    del tpu["tensorflow-tpu"], tpu["libtpu"]
    assert tpu.items() <= others.items()
