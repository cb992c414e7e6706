"""A folder of good files, which the cases replace one by one."""

import json
import pathlib

import numpy as np
import pytest

import create_pretraining_data
from bert.common.formats import tensor_files
from bert.data.text import tokenizer_files
from bert.data.text.casing import Casing
from bert.modeling.formats import huggingface
from bert.modeling.networks import build_pretraining_model
from tests.helpers import model_files, once, pretraining_files, small, text

FOLDERS = "model hf records bare other tuned renamed hidden".split()


def shared(factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder of good files, which no test changes.

    Args:
        factory: `tmp_path_factory`.
    """
    return once.written(factory, "good", write)


def write(folder: pathlib.Path) -> None:
    """Writes one small file of each kind."""
    for name in FOLDERS:
        (folder / name).mkdir()
    config = model_files.write_sizes(
        folder / "model", max_position_embeddings=37
    )
    text.write_vocabulary(folder / "hf" / "vocab.txt")
    swapped = {"tree": "house", "house": "tree"}
    other = [swapped.get(token, token) for token in text.VOCABULARY]
    text.write_vocabulary(folder / "other.txt", other)
    text.write_vocabulary(folder / "renamed" / "vocab.txt", other)
    wide = ["t" * 257 if x == "tree" else x for x in text.VOCABULARY]
    text.write_vocabulary(folder / "wide.txt", wide)
    (folder / "hidden" / ".hidden").write_text("One.")
    (folder / "renamed" / "x.ckpt.meta").touch()  # a part of a checkpoint
    text.write_corpus(folder / "corpus.txt", 7)
    (folder / "corpus.jsonl").write_text('{"text": "a tree"}\n')
    (folder / "masks.txt").write_text("the [MASK] sees a dog\n")
    (folder / "columns.csv").write_text("id,text\n1,a\n")
    (folder / "words.txt").write_text("the O\n")
    (folder / "capital.txt").write_text("Tree\n")
    (folder / "hyphen.txt").write_text("tree-house\n")
    (folder / "tags.txt").write_text("the DT\n")
    for name in ("table", "to_predict"):
        (folder / f"{name}.tsv").write_text("t\tl\na\tx\nb\ty\n")
    (folder / "choices.csv").write_text(
        "sent1,sent2,ending0,ending1,label\nthe cat,it,sees,likes,1\n"
    )
    qa = {"id": 7, "question": "who?", "context": "a b c"}
    qa["answers"] = {"text": ["a"], "answer_start": [0]}
    (folder / "squad.json").write_text(json.dumps([qa]))
    (folder / "tuned" / "checkpoint").touch()
    classes = {"kind": "classes", "labels": ["0", "1"]}
    (folder / "tuned" / "task.json").write_text(json.dumps(classes))
    labels = {"kind": "entities", "labels": ["O"]}
    (folder / "model" / "task.json").write_text(json.dumps(labels))
    values = model_files.values_of(build_pretraining_model(config))
    values["cls/ner/output_weights"] = np.zeros((1, config.hidden_size), "f4")
    values["cls/ner/output_bias"] = np.zeros(1, "f4")
    prefix = str(folder / "model" / "bert_model.ckpt")
    tensor_files.write(prefix, values)
    huggingface.write(str(folder / "hf"), config, values)
    huggingface.write(str(folder / "other"), config, values)
    (folder / "other" / "model.safetensors").unlink()
    tokenizer_files.write_config(str(folder / "hf"), Casing(True, None))
    flags = {
        "input_file": folder / "corpus.txt",
        "vocab_file": folder / "model" / "vocab.txt",
        "output_file": folder / "records" / "good.tfrecord",
        "max_seq_length": 31,
        "max_predictions_per_seq": 5,
        "num_processes": 1,
    }
    argv = [f"--{name}={value}" for name, value in flags.items()]
    create_pretraining_data.main(["create_pretraining_data", *argv])
    content = (folder / "records" / "good.tfrecord").read_bytes()
    (folder / "bare" / "good.tfrecord").write_bytes(content)
    write_odd_records(folder)


def write_odd_records(folder: pathlib.Path) -> None:
    """Writes records that differ in one setting each from those of `plain`."""
    for name, changed in (
        ("plain", {}),
        ("cased", {"do_lower_case": True}),
        ("accents", {"strip_accents": True}),
        ("long", {"length": 13}),
        ("longer", {"length": 41}),
        ("more", {"max_predictions_per_seq": small.P + 1}),
        ("other_vocabulary", {}),
    ):
        path = folder / name / "0.tfrecord"
        pretraining_files.write_records(path, 5, **changed)
    path = folder / "other_vocabulary" / "_0.manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps(manifest | {"vocab_sha256": "0123" * 16}))
