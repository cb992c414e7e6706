"""The commands of docs/domain.md, from packages and a model to the scores."""

import os
import pathlib
import random
import string
import subprocess
import sys

import pytest

from bert.common.formats import tensor_files
from bert.modeling.encoder import build_encoder
from tests.helpers import model_files, text

ROOT = pathlib.Path(__file__).parents[2]
SIZES = {"WORDS": 2, "STEPS": 5, "EPOCHS": 1, "SEEDS": 2, "EVERY": 9}


def write_package(folder: pathlib.Path, words: list[str]) -> None:
    """Modules with docstrings of common words and words of the package."""
    rng = random.Random(folder.name)
    folder.mkdir(parents=True)
    for number in range(61):
        sentences = [
            " ".join(rng.choices([*text.WORDS, *words], k=9)).capitalize()
            for _ in range(5)
        ]
        path = folder / f"module_{number}.py"
        path.write_text(f'"""{". ".join(sentences)}."""\n')


def write_published(folder: pathlib.Path) -> None:
    """A model whose vocabulary has unused slots and all letters."""
    letters = string.ascii_lowercase
    unused = [f"[unused{i}]" for i in range(7)]
    pieces = [f"##{letter}" for letter in letters]
    tokens = dict.fromkeys([*text.VOCABULARY, *unused, *letters, *pieces])
    folder.mkdir()
    config = model_files.write_sizes(
        folder, tokens=list(tokens), max_position_embeddings=131
    )
    values = model_files.random_values(build_encoder(config), 0.1)
    tensor_files.write(str(folder / "bert_model.ckpt"), values)


@pytest.mark.long
def test_the_example_runs_from_packages_to_scores(tmp_path):
    write_package(tmp_path / "packages" / "alpha", ["alphaset", "tensor"])
    write_package(tmp_path / "packages" / "beta", ["betamax", "gradient"])
    write_published(tmp_path / "minilm_google")
    done = subprocess.run(
        ["bash", ROOT / "examples" / "domain.sh", sys.executable, tmp_path],
        env=os.environ
        | {name: str(value) for name, value in SIZES.items()}
        | {"NAMES": "alpha beta", "MORE": " "},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len((tmp_path / "words.txt").read_text().split()) == 2
    for run in ("plain", "longer", "words", "adapted"):
        results = (tmp_path / run / "eval_results.txt").read_text()
        assert "eval_accuracy_std" in results
