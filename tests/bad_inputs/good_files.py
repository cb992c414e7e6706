"""A folder of good files, which the cases replace one by one."""

import json
import pathlib

import pytest

import create_pretraining_data
from bert.common.formats import tensor_files
from bert.data.text import tokenizer_files
from bert.data.text.casing import Casing
from bert.modeling.formats import huggingface
from bert.modeling.networks import build_pretraining_model
from tests.helpers import model_files, once, text


def shared(factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder of good files, which no test changes.

    Args:
        factory: `tmp_path_factory`.
    """
    return once.written(factory, "good", write)


def write(folder: pathlib.Path) -> None:
    """Writes one small file of each kind."""
    for name in ("model", "hf", "records", "bare", "other", "tuned"):
        (folder / name).mkdir()
    config = model_files.write_sizes(
        folder / "model", max_position_embeddings=37
    )
    text.write_vocabulary(folder / "hf" / "vocab.txt")
    swapped = {"tree": "house", "house": "tree"}
    other = [swapped.get(token, token) for token in text.VOCABULARY]
    text.write_vocabulary(folder / "other.txt", other)
    text.write_corpus(folder / "corpus.txt", 7)
    (folder / "corpus.jsonl").write_text('{"text": "a tree"}\n')
    (folder / "masks.txt").write_text("the [MASK] sees a dog\n")
    (folder / "words.txt").write_text("the O\n")
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
