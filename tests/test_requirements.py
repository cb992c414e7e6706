"""requirements.lock has the packages of the lists, with hashes alone."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]
PIN = re.compile(r"([\w.-]+)==([\w.!+-]+)( ; .+?)? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


def locked():
    """(name, version, marker) of each package; a version may follow Python."""
    blocks, lines = [], (ROOT / "requirements.lock").read_text().splitlines()
    for line in lines:
        if line.startswith((" ", "#")):
            kind = line.strip()[0]
            assert kind == "#" or HASH.fullmatch(line), line
            if blocks and kind != "#":
                blocks[-1][1].append(line)
        else:
            found = PIN.fullmatch(line)
            assert found, line
            blocks.append((found.groups(), []))
    assert all(hashes for _, hashes in blocks)
    return [pin for pin, _ in blocks]


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
    always = {
        (name, version) for name, version, marker in locked() if not marker
    }
    assert len(listed()) > 15
    assert listed() <= always


def test_the_lock_file_names_no_server():
    text = (ROOT / "requirements.lock").read_text()
    assert "make lock" in text.splitlines()[1]
    for word in ("://", "index-url", "find-links", " @ ", "-e "):
        assert word not in text
