"""Small files under the names that README.md and docs/ use."""

import csv
import gzip
import json
import pathlib
import random
import shutil
import string

from bert.common import tensor_files
from bert.modeling.encoder import build_encoder
from bert.modeling.models import build_pretraining_model
from tests.helpers import (
    classifier_files,
    library_files,
    model_files,
    pretraining_files,
    small,
    text,
)

POSITIONS = 131
VOCABULARY = 101  # size of the learned vocabulary


def _config(**changed):
    return small.config(max_position_embeddings=POSITIONS, **changed)


def _write_checkpoint(path, network):
    values = model_files.random_values(network, 0.1)
    tensor_files.write(str(path), values)


def bert(folder: pathlib.Path, layers: int = small.L) -> None:
    """A folder as the original release ships it; without heads."""
    folder.mkdir(parents=True)
    config = model_files.write_sizes(
        folder, max_position_embeddings=POSITIONS, num_hidden_layers=layers
    )
    _write_checkpoint(folder / "bert_model.ckpt", build_encoder(config))


def published(folder: pathlib.Path) -> None:
    """A model whose vocabulary has unused slots and all letters."""
    letters = string.ascii_lowercase
    unused = [f"[unused{i}]" for i in range(7)]
    pieces = [f"##{letter}" for letter in letters]
    tokens = dict.fromkeys([*text.VOCABULARY, *unused, *letters, *pieces])
    folder.mkdir()
    config = model_files.write_sizes(
        folder, tokens=list(tokens), max_position_embeddings=POSITIONS
    )
    _write_checkpoint(folder / "bert_model.ckpt", build_encoder(config))


def _write_config(folder, names, **changed):
    configs = folder / "bert" / "configs"
    configs.mkdir(parents=True)
    for name in names:
        path = configs / f"bert_{name}.json"
        path.write_text(_config(**changed).to_json())


def data(folder: pathlib.Path) -> None:
    """Raw text, a published vocabulary, a config and a checkpoint."""
    rng = random.Random(5)
    with gzip.open(folder / "wiki.jsonl.gz", "wt") as file:
        for _ in range(61):
            sentences = [
                " ".join(rng.choices(text.WORDS, k=7)).capitalize() + "."
                for _ in range(11)
            ]
            file.write(json.dumps({"text": " ".join(sentences)}) + "\n")
    letters = sorted(set("".join(text.WORDS)))
    unused = [f"[unused{i}]" for i in range(7)]
    tokens = [*text.VOCABULARY[:5], *unused, *letters, "."]
    tokens += [f"##{letter}" for letter in letters]
    (folder / "uncased.txt").write_text("".join(f"{x}\n" for x in tokens))
    _write_config(folder, ["mini"], vocab_size=VOCABULARY)
    mini = folder / "bert" / "configs" / "bert_mini.json"
    shutil.copy(mini, folder / "config.json")
    model = build_pretraining_model(_config(vocab_size=VOCABULARY))
    _write_checkpoint(folder / "bert_model.ckpt", model)


def pretraining(folder: pathlib.Path) -> None:
    """Records and configs of the quickstart and of two phases."""
    records = ("quickstart/train", "quickstart/held_out")
    for name in (*records, "records_128/a", "records_512/a"):
        path = folder / f"{name}.tfrecord"
        pretraining_files.write_records(path, 29)
    _write_config(folder, ["quickstart", "base"])


def classification(folder: pathlib.Path) -> None:
    """MRPC, and mails in folders."""
    (folder / "glue" / "MRPC").mkdir(parents=True)
    classifier_files.write_task(folder / "glue" / "MRPC")
    rng = random.Random(7)
    for name in ("mails", "more_mails"):
        with open(folder / f"{name}.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["subject", "body", "folder"])
            for _ in range(23):
                words = rng.choices(text.WORDS, k=5)
                row = [" ".join(words[:3]), " ".join(words[3:])]
                writer.writerow([*row, rng.choice(["inbox", "spam"])])


def weights(folder: pathlib.Path) -> None:
    """MiniLM as converted, lines, and words to add."""
    bert(folder / "minilm_google")
    (folder / "lines.txt").write_text("the cat sees\na dog ||| a bird\n")
    (folder / "words.txt").write_text("catfish\nriverstone\n")


def library(folder: pathlib.Path) -> None:
    """A checkpoint, records and their config, and a table of sentences."""
    library_files.pretrained(folder / "model")
    pretraining_files.write_records(folder / "records" / "wiki.tfrecord", 7)
    (folder / "config.json").write_text(_config().to_json())
    rows = ["sentence\tlabel", "the cat\tfine", "a dog\tdull", "tree\tfine"]
    (folder / "train.tsv").write_text("\n".join(rows) + "\n")
