"""The corpus of docstrings, and the commands of the examples."""

import importlib
import pathlib
import re
import runpy

import pytest

from bert.common import flags

ROOT = pathlib.Path(__file__).parents[2]
corpus = runpy.run_path(str(ROOT / "examples" / "docstring_corpus.py"))


def test_prose_is_split_into_sentences_and_code_is_dropped():
    docstring = """Returns the sum of both arrays. It is never negative!

    >>> f(1)
    1

    Args:
      x: the first of the two arrays that are added.
    """
    assert corpus["split"](docstring) == [
        "Returns the sum of both arrays.",
        "It is never negative!",
        "x: the first of the two arrays that are added.",
    ]


def test_duplicate_sentences_and_invalid_python_are_skipped(tmp_path):
    path, seen = tmp_path / "module.py", set()
    path.write_text('"""One sentence of five words."""\n')
    first = corpus["sentences"](str(path), seen)
    assert first == ["One sentence of five words."]
    assert corpus["sentences"](str(path), seen) == []
    path.write_text("def :")
    assert corpus["sentences"](str(path), set()) == []


def test_the_corpus_covers_the_libraries_in_order():
    names = [name for name, _ in corpus["modules"]([])]
    first = {name.split("/")[0] for name in names}
    assert first == {"python", "numpy", "keras", "tensorflow"}
    assert len(names) > 1000
    assert len(set(names)) == len(names)
    assert not [name for name in names if "site-packages" in name]


def test_the_sentences_of_a_package_are_spread_over_its_modules(tmp_path):
    path = tmp_path / "packages.tsv"
    lines = [f"sentence {i}" for i in range(7)]
    corpus["write_packages"](str(path), {"b": ["one"], "a": lines}, 3)
    assert path.read_text().splitlines() == [
        "package\tsentence",
        "a\tsentence 0",
        "a\tsentence 2",
        "a\tsentence 4",
        "b\tone",
    ]


def test_packages_are_named_by_their_folders(tmp_path):
    for name in ("alpha", "beta"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").touch()
    folders = [str(tmp_path / name) for name in ("beta", "alpha")]
    names = [name for name, _ in corpus["modules"](folders)]
    assert names == ["beta/a.py", "alpha/a.py"]


@pytest.mark.parametrize("example", ["quickstart", "domain"])
def test_an_example_passes_flags_that_exist(example):
    script = (ROOT / "examples" / f"{example}.sh").read_text()
    commands = re.findall(r'"\$python" (\w+\.py.*?[^\\])$', script, re.M | re.S)
    assert len(commands) > 4
    for command in commands:
        name = command.split(maxsplit=1)[0]
        script = importlib.import_module(name.removesuffix(".py"))
        declared = {one.name for one in flags.flags_of(script.Settings)}
        used = re.findall(r" --(\w+)", command)
        assert used
        assert set(used) <= declared, name
