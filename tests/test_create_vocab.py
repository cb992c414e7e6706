"""create_vocab from text to a vocabulary that the tokenizer reads."""

import os
import subprocess
import sys

import pytest

import create_vocab
from data import tokenization, vocabulary
from tests import text

ROOT = os.path.dirname(os.path.dirname(__file__))


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.txt"
    text.write_corpus(path, 37)
    return path


def test_it_learns_the_words_of_the_corpus(run_script, corpus, tmp_path):
    output = tmp_path / "vocab.txt"
    code, out, err = run_script(
        create_vocab, input_file=corpus, output_file=output, vocab_size=300
    )
    assert code == 0, err
    vocab = vocabulary.read_vocabulary(str(output))
    assert set(text.WORDS) <= set(vocab)
    assert [vocab[t] for t in ("[PAD]", "[UNK]", "[CLS]", "[SEP]")] == [
        *(0, 100, 101, 102),
    ]
    assert vocab["[MASK]"] == 103
    assert vocab["[unused98]"] == 99
    tokenizer = tokenization.FullTokenizer(str(output))
    tokens = tokenizer.tokenize(corpus.read_text())
    assert "[UNK]" not in tokens
    assert out.startswith(f"wrote {len(vocab)} tokens, learned from ")


@pytest.mark.parametrize(
    ("flag", "word"),
    [("--do_lower_case", "über"), ("--nodo_lower_case", "Über")],
)
def test_casing(run_script, tmp_path, flag, word):
    path, output = tmp_path / "corpus.txt", tmp_path / "vocab.txt"
    path.write_text("Über Über\n\nÜber\n")
    code, _, err = run_script(
        create_vocab, flag, input_file=path, output_file=output, vocab_size=130
    )
    assert code == 0, err
    vocab = vocabulary.read_vocabulary(str(output))
    expected = "uber" if flag == "--do_lower_case" else word
    assert expected in vocab
    assert "[unused98]" in vocab


def test_hash_seeds_change_nothing(corpus, tmp_path):
    """Each process draws another order of Python's and the learner's sets."""
    contents = set()
    for seed in ("1", "2", "3"):
        output = tmp_path / f"vocab{seed}.txt"
        subprocess.run(
            [
                sys.executable,
                os.path.join(ROOT, "create_vocab.py"),
                f"--input_file={corpus}",
                f"--output_file={output}",
                "--vocab_size=150",
            ],
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
        )
        contents.add(output.read_bytes())
    assert len(contents) == 1
