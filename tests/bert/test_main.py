import runpy
import sys

import pytest

from bert import __main__ as dispatcher
from tests.helpers import flags_page


def run(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["bert", *words])
    return dispatcher.main()


@pytest.mark.parametrize("words", [(), ("--help",), ("-h",)])
def test_help_lists_every_script(words, monkeypatch, capsys):
    assert run(monkeypatch, *words) == 0
    out = capsys.readouterr().out
    for name in flags_page.SCRIPTS:
        assert f"\n    {name} " in out
    assert "Fine-tunes BERT to classify texts or pairs" in out


def test_an_unknown_script_is_an_error(monkeypatch, capsys):
    assert run(monkeypatch, "run_clasifier") == 2
    message = "error: unknown script 'run_clasifier'; see bert --help\n"
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("name", ["doctor", "doctor.py"])
def test_a_script_gets_its_flags(name, monkeypatch):
    seen = []

    def run_module(module, run_name, alter_sys):
        seen.append((module, run_name, alter_sys, sys.argv))

    monkeypatch.setattr(runpy, "run_module", run_module)
    assert run(monkeypatch, name, "--help", "--x=1") == 0
    argv = ["bert doctor", "--help", "--x=1"]
    assert seen == [("bert.scripts.doctor", "__main__", True, argv)]


def test_the_script_ends_the_process(monkeypatch, capsys):
    """`--help` of a script: its own exit code and text."""
    with pytest.raises(SystemExit) as end:
        run(monkeypatch, "doctor", "--help")
    assert end.value.code == 0
    assert "--init_checkpoint" in capsys.readouterr().out
