"""A vocabulary from a large corpus; only in `make test-long`."""

import pathlib
import random
import sys

import pytest

from benchmarks.vocabulary import run
from bert.data.text import vocabulary
from tests.helpers import text

SCRIPT = pathlib.Path(__file__).parents[2] / "create_vocab.py"
pytestmark = pytest.mark.long


def command(corpus, output, **flags):
    flags = {"input_file": corpus, "output_file": output, **flags}
    words = [f"--{name}={value}" for name, value in flags.items()]
    return [sys.executable, str(SCRIPT), *words]


def test_memory_does_not_grow_with_the_corpus(tmp_path):
    """1 GB of text; half of its words occur once. Sum over all processes."""
    rng = random.Random(1)
    with open(tmp_path / "corpus.txt", "w") as file:
        while file.tell() < 1_000_000_000:
            digits = rng.randbytes(2_000_000).hex()
            for start in range(0, len(digits), 90):
                common = " ".join(rng.choices(text.WORDS, k=17))
                line = digits[start : start + 90]
                rare = (line[i : i + 9] for i in range(0, 90, 9))
                file.write(f"{common} {' '.join(rare)} .\n")
    output = tmp_path / "vocab.txt"
    _, megabytes = run(command(tmp_path / "corpus.txt", output), every=0.2)
    assert megabytes < 1000
    assert set(text.WORDS) <= set(vocabulary.read_vocabulary(str(output)))
