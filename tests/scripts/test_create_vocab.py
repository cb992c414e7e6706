"""create_vocab from text to a vocabulary that the tokenizer reads."""

import pytest

import create_vocab
from bert.data.corpus import word_counts
from bert.data.text import tokenization, vocabulary
from bert.data.text.casing import Casing
from tests.helpers import text


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
    measured, sample, wrote = out.splitlines()
    assert measured.startswith("all text (too short for held-out lines)")
    assert ", 1.000 tokens per word, 0.00% [UNK], 100.0% of the" in measured
    assert sample.startswith("words, a sample: ") and " finds" in sample
    assert wrote.startswith(f"wrote {len(vocab)} tokens, learned from ")


@pytest.mark.parametrize(
    ("flag", "word"),
    [
        ("--do_lower_case", "uber"),
        ("--nodo_lower_case", "Über"),
        ("--nostrip_accents", "über"),
    ],
)
def test_casing(run_script, tmp_path, flag, word):
    path, output = tmp_path / "corpus.txt", tmp_path / "vocab.txt"
    path.write_text("Über Über\n\nÜber\n")
    code, _, err = run_script(
        create_vocab, flag, input_file=path, output_file=output, vocab_size=130
    )
    assert code == 0, err
    vocab = vocabulary.read_vocabulary(str(output))
    assert word in vocab
    assert "[unused98]" in vocab
    assert err.count("--nostrip_accents") == (word == "uber")


@pytest.fixture
def large(tmp_path, monkeypatch):
    """A corpus of more than a thousand lines in several chunks."""
    path = tmp_path / "large.txt"
    text.write_corpus(path, 311)
    monkeypatch.setattr(word_counts, "CHUNK_SIZE", 7919)
    return path


BASE = [*text.VOCABULARY[:5], "[unused0]", "[unused1]", "[unused2]"]
LETTERS = sorted(set("".join(text.WORDS)))
BASE += [*LETTERS, *(f"##{letter}" for letter in LETTERS), ".", "the"]


@pytest.fixture
def extended(run_script, large, tmp_path):
    """Runs with a base vocabulary; returns (code, out, err, tokens)."""
    base, output = tmp_path / "base.txt", tmp_path / "vocab.txt"
    output.write_text("old")
    vocabulary.write_vocabulary(str(base), BASE)

    def run(*words, **changed):
        flags = {
            "input_file": large,
            "output_file": output,
            "base_vocab": base,
            "num_new_tokens": 2,
            **changed,
        }
        flags = {name: v for name, v in flags.items() if v is not None}
        code, out, err = run_script(create_vocab, *words, **flags)
        if code:
            assert output.read_text() == "old"
        return code, out, err, output.read_text().splitlines()

    return run


def test_words_that_are_split_most_take_unused_slots(extended, large):
    code, out, err, tokens = extended()
    assert code == 0, err
    old = tokenization.WordpieceTokenizer({t: i for i, t in enumerate(BASE)})
    counts = word_counts.count_corpus([str(large)], Casing(True), 1)
    costs = {
        word: count * (len(old.tokenize(word)) - 1)
        for word, count in counts.words.items()
    }
    new = sorted(costs, key=lambda word: (-costs[word], word))[:2]
    assert tokens == [*BASE[:5], *new, *BASE[7:]]
    before, after, sample, wrote = out.splitlines()
    assert sample == f"words, a sample: {' '.join(new)}"
    assert before.startswith("held out, before: ")
    assert after.startswith("held out, after: ")
    lengths = [
        float(x.split(" tokens per")[0].split()[-1]) for x in (before, after)
    ]
    assert lengths[0] > lengths[1] > 1
    assert wrote.startswith(f"wrote {len(BASE)} tokens, 2 of them new, ")


def test_new_words_added_by_convert_checkpoint_have_the_same_ids(extended):
    """It takes them in the order of the new file."""
    tokens = extended(num_new_tokens=3)[3]
    words = [token for token in tokens if token not in BASE]
    assert len(words) == 3
    assert vocabulary.add_words(BASE, words)[0] == tokens


def test_fewer_words_than_requested_are_reported(extended, tmp_path):
    (tmp_path / "few.txt").write_text("the cat ──── \n" * 3)
    code, _, err, tokens = extended(input_file=tmp_path / "few.txt")
    assert code == 0, err
    assert "warning: the corpus has only 1 words to add" in err
    assert tokens[5:8] == ["cat", "[unused1]", "[unused2]"]


def test_a_vocabulary_of_the_other_case_is_reported(extended):
    code, _, err, _ = extended("--nodo_lower_case")
    assert code == 0
    assert (
        "base.txt does not look like a vocabulary for --do_lower_case=False"
        in err
    )


def test_a_corpus_without_a_word_to_add_is_reported(extended):
    code, _, err, _ = extended(min_frequency=10**6)
    assert code == 2
    assert "base.txt: no word to add; expected words" in err.splitlines()[-1]
