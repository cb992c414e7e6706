"""A small checkpoint, a learnable task in the format of MRPC, an export."""

import pathlib
import random

from bert.common.formats import tensor_files
from bert.data.labels import CLASSES, PLAIN, Labels, PostProcessing
from bert.data.pooling import PoolingConfig
from bert.data.text.tokenizer import Tokenizer
from bert.export import folder as export_folder
from bert.modeling import encoder, networks, task_heads
from bert.modeling.formats import conversion, openvino
from bert.modeling.formats.model import Model
from bert.modeling.formats.model_folder import ModelFolder
from tests.helpers import model_files, once, small

HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
TRAIN, DEV, TEST, EPOCHS = 61, 19, 11, 10


def write_model(folder: pathlib.Path) -> None:
    """Writes bert_model.ckpt, bert_config.json and vocab.txt."""
    config = model_files.write_sizes(folder)
    model = networks.build(config, task_heads.CLASSIFIER, 2)
    noise = model_files.random_values(model, 0.1)
    values = {
        name: value + noise[name]
        for name, value in model_files.values_of(model).items()
        if not name.startswith("output_")
    }
    tensor_files.write(str(folder / "bert_model.ckpt"), values)


def write_task(folder: pathlib.Path) -> None:
    """Writes train.tsv, dev.tsv and test.tsv; label 1 if the text has "cat"."""
    rng = random.Random(7)
    for name, count in (("train", TRAIN), ("dev", DEV), ("test", TEST)):
        lines = [HEADER if name != "test" else f"index{HEADER[7:]}"]
        for number in range(count):
            label = rng.randrange(2)
            words = rng.choices(["dog", "sees", "the", "tree"], k=4)
            if label:
                words[rng.randrange(4)] = "cat"
            b = rng.choices(["a", "bird", "finds"], k=rng.randrange(1, 5))
            first = label if name != "test" else number
            row = [str(first), "1", "2", " ".join(words), " ".join(b)]
            lines.append("\t".join(row))
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n")


def write_table(folder: pathlib.Path, rows: int) -> dict:
    """Writes mails.csv and new.csv, a file to predict; returns their flags.

    The label is y if the text has "cat"; there are 13 authors.
    """
    rng = random.Random(7)
    lines = ["id,text,label,author"]
    for number in range(rows):
        words = rng.choices(["dog", "sees", "the", "tree", "bird"], k=5)
        label = "ny"[rng.randrange(2)]
        words[rng.randrange(5)] = "cat" if label == "y" else "a"
        lines.append(f"q{number},{' '.join(words)},{label},{number % 13}")
    (folder / "mails.csv").write_text("\n".join(lines) + "\n")
    (folder / "new.csv").write_text("id,text\nz1,the cat\nz2,a dog\n")
    named = flags_of(folder)
    del named["data_dir"]
    return named | {
        "task_name": "csv",
        "train_file": folder / "mails.csv",
        "predict_file": folder / "new.csv",
        "text_column": "text",
        "label_column": "label",
        "id_column": "id",
        "num_train_epochs": 2,
    }


def flags_of(folder: pathlib.Path) -> dict:
    """Flags of a short run with this model and task."""
    return {
        "task_name": "mrpc",
        "data_dir": folder,
        "vocab_file": folder / "vocab.txt",
        "bert_config_file": folder / "bert_config.json",
        "init_checkpoint": folder / "bert_model.ckpt",
        "max_seq_length": small.POSITIONS,
        "train_batch_size": 7,
        "learning_rate": 0.005,
        "num_train_epochs": EPOCHS,
    }


def rows_of(path: pathlib.Path) -> list[list[str]]:
    """The tab-separated fields of each line."""
    return [line.split("\t") for line in path.read_text().splitlines()]


def classifier_of(
    folder: pathlib.Path,
    kind: str = CLASSES,
    names: tuple[str, ...] = ("no", "yes", "maybe"),
    pairs: bool = False,
    decision: PostProcessing = PLAIN,
) -> ModelFolder:
    """A classifier with random weights.

    Args:
        folder: to write its config and vocabulary to.
        kind, names: of the labels.
        pairs: whether it takes two texts.
        decision: post-processing of the logits.
    """
    config = model_files.write_sizes(folder)
    labels = Labels(kind, names, decision=decision)
    model = networks.build(config, task_heads.CLASSIFIER, labels.size)
    weights = model_files.random_values(model, 0.5)
    tokenizer = Tokenizer(str(folder / "vocab.txt")).with_max_length(13)
    task = {"kind": kind, "labels": list(names), "max_seq_length": 13}
    task |= {"pairs": pairs} | decision.described()
    return Model("", config, weights, tokenizer, task)


def embedding_model_of(folder: pathlib.Path) -> ModelFolder:
    """An embedding model with random weights.

    Args:
        folder: to write its config and vocabulary to.
    """
    config = model_files.write_sizes(folder)
    weights = model_files.random_values(encoder.build_encoder(config), 0.5)
    tokenizer = Tokenizer(str(folder / "vocab.txt")).with_max_length(13)
    how = PoolingConfig("mean", True)
    return Model("", config, weights, tokenizer, pooling_config=how)


def write_export(folder: pathlib.Path, openvino: str = "none", **model) -> str:
    """Exports a classifier with random weights; returns its folder.

    Args:
        folder: to write `export`, config and vocabulary to.
        openvino: precision of `export/openvino`.
        **model: see `classifier_of`.
    """
    exported = folder / "export"
    exported.mkdir()
    bert = classifier_of(folder, **model)
    export_folder.write_model(str(exported), bert, openvino_precision=openvino)
    return str(exported)


def write_networks(folder: pathlib.Path, bert: ModelFolder) -> str:
    """Writes a checkpoint and a network of OpenVINO, in a part of the time.

    Args:
        folder: to write `model` and `model/openvino` to.
        bert: the model.

    Returns:
        the folder `model`.
    """
    for target, path in (("google", "model"), ("openvino", "model/openvino")):
        (folder / path).mkdir()
        conversion.write(bert, target, str(folder / path))
    network = str(folder / "model" / "openvino")
    openvino.write(network, bert.config, bert.values)
    return str(folder / "model")


def shared_networks(factory) -> str:
    """Folder of a checkpoint and its network, that no test changes.

    Args:
        factory: `tmp_path_factory`.
    """

    def write(folder: pathlib.Path) -> None:
        write_networks(folder, classifier_of(folder))

    return str(once.written(factory, "networks", write) / "model")


def shared_export(factory) -> str:
    """Folder of an export of one text, and a network, that no test changes.

    Args:
        factory: `tmp_path_factory`.
    """

    def write(folder: pathlib.Path) -> None:
        write_export(folder, openvino="float32")

    return str(once.written(factory, "classifier", write) / "export")
