"""Mistakes that create_pretraining_data reports instead of making records."""

import os

import pytest

import create_vocab
from data.pretraining import runners
from tests.helpers import text


@pytest.fixture
def folder(tmp_path):
    """A corpus and its vocabulary."""
    text.write_corpus(tmp_path / "corpus.txt", 53)
    text.write_vocabulary(tmp_path / "vocab.txt")
    return tmp_path


def test_a_vocabulary_of_another_casing_is_reported(create, folder):
    _, _, err = create("out")
    assert "capital letter" not in err
    words = (folder / "vocab.txt").read_text()
    (folder / "cased.txt").write_text(f"{words}The\nTree\n")
    _, _, err = create("out", vocab_file=folder / "cased.txt")
    assert "cased.txt: has tokens with capital letters, do_lower_case" in err
    assert "pass --nodo_lower_case" in err


def test_words_longer_than_the_masks_are_reported(create, folder):
    """As text without spaces, of which no word can be masked."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = (folder / "vocab.txt").read_text().split()
    words += [*letters, *(f"##{x}" for x in letters)]
    (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(words)) + "\n")
    text = f"{letters[:23]}\n{letters[3:]}\n\n" * 5
    (folder / "corpus.txt").write_text(text)
    flags = {"do_whole_word_mask": True, "short_seq_prob": 0}
    _, _, err = create("out", code=2, max_seq_length=64, **flags)
    assert "error: no token is masked; expected words of fewer tokens" in err
    assert not (folder / "out").exists()


def test_a_vocabulary_that_changes_during_the_run(create, folder, monkeypatch):
    """The records would have the ids of the old one."""
    run_local = runners.run_local

    def changed(*arguments):
        found = run_local(*arguments)
        with open(folder / "vocab.txt", "a") as file:
            file.write("another\n")
        return found

    monkeypatch.setattr(runners, "run_local", changed)
    _, _, err = create("out", code=2)
    assert f"{folder}/vocab.txt: has changed since the run started" in err
    assert not (folder / "out").exists()


def test_json_lines_are_no_corpus(create, folder, run_script):
    path = folder / "corpus.jsonl"
    path.write_text('{"text": "a"}\n')
    message = f"{path}: is JSON lines, by its name; expected one sentence per"
    _, _, err = create("out", code=2, input_file=path)
    assert message in err
    code, _, err = run_script(
        create_vocab, input_file=path, output_file=folder / "v.txt"
    )
    assert code == 2 and message in err


def test_a_pipe_is_not_replaced(create, folder):
    os.mkfifo(folder / "pipe")
    _, _, err = create("out", code=2, output_file=folder / "pipe")
    assert f"--output_file='{folder}/pipe' names no file" in err
    assert (folder / "pipe").is_fifo()
