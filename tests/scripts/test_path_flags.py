"""`~` in the flags that name files and folders, of every script."""

import importlib
import os
import pathlib

import pytest

import create_vocab
from common import flags
from tests.helpers import text

ROOT = pathlib.Path(__file__).parents[2]
NO_PATHS = set(
    "delimiter gcp_project host id_column inputs label_column "
    "label_separator labels language layers master runner signature skip_steps "
    "task_name text_b_column text_column text_field tpu_name tpu_zone "
    "train_for train_language".split()
)


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in ROOT.glob("*.py"))
)
def test_every_path_flag_of_every_script_knows_the_home_folder(name, home):
    """A new flag of text is a path, or is named in `NO_PATHS`."""
    script = importlib.import_module(name)
    declared = list(flags.flags_of(script.Settings))
    paths = {
        one.name
        for one in declared
        if one.kind in (str, tuple) and not one.choices
    } - NO_PATHS
    argv = [f"--{flag}=~/a*,b~,~/c" for flag in paths]
    argv += [f"--{x.name}={x.choices[0]}" for x in declared if x.choices]
    found = flags.parse([name, *argv], script.Settings, "")
    expected = f"{home}/a*,b~,{home}/c"
    assert paths
    assert flags.as_dict(found, "path") == dict.fromkeys(paths, expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("~", "{home}"),
        ("en=~/a*.gz,sw=~/b", "en={home}/a*.gz,sw={home}/b"),
        ("~/a:90,~/b:10:64", "{home}/a:90,{home}/b:10:64"),
        ("./~/a", "./~/a"),
        ("a~/b,~no-such-user/c", "a~/b,~no-such-user/c"),
    ],
)
def test_where_a_tilde_stands_for_the_home_folder(home, given, expected):
    argv = ["", f"--input_file={given}", "--output_file=x"]
    settings = flags.parse(argv, create_vocab.Settings, "")
    assert settings.input_file == expected.format(home=home)


def test_no_folder_is_named_by_a_tilde(home, tmp_path, run_script):
    text.write_corpus(home / "corpus.txt", 7)
    named = {"input_file": "~/corpus.txt", "output_file": "~/vocab.txt"}
    code, _, error = run_script(create_vocab, **named, vocab_size=149)
    assert code == 0, error
    assert (home / "vocab.txt").is_file()
    assert os.listdir(tmp_path) == ["home"]
