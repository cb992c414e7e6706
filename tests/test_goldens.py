"""Bits, numbers, files, flags and messages that no change may alter unseen.

`tests/goldens.json` holds them. After a wanted change, write them again, all
or those of a section, and look at what differs:

    WRITE_GOLDENS=1 python -m pytest tests/test_goldens.py -k dropout
"""

import contextlib
import hashlib
import importlib
import io
import json
import math
import os
import pathlib
import random
import re
from collections.abc import Iterable

import numpy as np
import pytest
import tensorflow as tf

from bert.common import flags
from bert.common import main as main_lib
from bert.common.formats import tensor_files
from bert.data.records import encoding, frames
from bert.data.records.examples import INPUTS, Examples
from bert.inference.predictor import Predictor
from bert.modeling import networks
from bert.modeling.config import BertConfig
from bert.runs import finetuning
from tests.helpers import flags_page, model_files

pytestmark = pytest.mark.bits
LONG = ("pretraining", "squad", "ner", "swag")
GOLDENS = pathlib.Path(__file__).with_name("goldens.json")
WORDS = (
    "the a cat dog bird fish tree house river stone sees finds follows likes "
    "red green old small quick warm"
).split()
TOKENS = "[PAD] [UNK] [CLS] [SEP] [MASK] ##s ##er . ?".split() + WORDS
CONFIG = {
    "vocab_size": len(TOKENS),
    "hidden_size": 12,
    "num_hidden_layers": 1,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 32,
    "initializer_range": 0.2,
}
MODEL = (
    "--vocab_file=vocab.txt --bert_config_file=config.json --max_seq_length=24"
)
RECORDS = (
    "create_pretraining_data --input_file=corpus.txt --vocab_file=vocab.txt "
    "--max_seq_length=24 --max_predictions_per_seq=5 --dupe_factor=2 "
    "--num_processes=1 "
    "--output_file={0}/0.tfrecord,{0}/1.tfrecord"
)
KINDS = {
    "plain": "",
    "two": "--num_processes=2",
    "packed": "--pack_sequences",
    "words": "--do_whole_word_mask",
    "ngrams": "--max_ngram=3 --do_whole_word_mask",
}
PRETRAIN = (
    "run_pretraining --do_train --do_eval --noreport --output_dir=run "
    "--input_file=records/*.tfrecord --train_batch_size=6 --max_eval_steps=2 "
    "--gradient_accumulation_steps=2 --num_train_steps=6 --num_warmup_steps=2 "
    "--learning_rate=0.001 --precision=float32 --bert_config_file=config.json"
)
TUNE = (
    f"--do_train --do_eval --do_predict --noreport --nolength_buckets {MODEL} "
    "--output_dir=run --export_dir=export --num_train_epochs=1 "
    "--train_batch_size=7 --learning_rate=5e-5"
)
TASKS = {
    "classifier": (
        "--task_name=tsv --train_file=train.tsv --eval_file=train.tsv "
        "--predict_file=train.tsv --text_column=a --text_b_column=b "
        "--label_column=label"
    ),
    "squad": (
        "--train_file=squad.json --predict_file=squad.json "
        "--version_2_with_negative --max_query_length=7 --doc_stride=5"
    ),
    "ner": (
        "--train_file=ner.txt --eval_file=ner.txt --predict_file=ner.txt "
        "--document_context"
    ),
    "swag": (
        "--train_file=swag.jsonl --eval_file=swag.jsonl "
        "--predict_file=swag.jsonl"
    ),
}
TEXT = "The small cats sees a warmer river."
QUESTIONS = {  # inputs of exports
    "text": [TEXT],
    "text_b": ["A dog?"],
    "question": ["Who sees a river?"],
    "context": [TEXT],
    "choices": [["a dog", "the river .", ""]],
}


def write_inputs() -> None:
    """Writes small inputs of every script to the current folder."""
    rng = random.Random(1)

    def text(low: int, high: int) -> str:
        words = rng.choices(WORDS, k=rng.randint(low, high))
        return " ".join(w + rng.choice(("", "", "s", "er")) for w in words)

    def write(name: str, lines: list[str]) -> None:
        pathlib.Path(name).write_text("".join(f"{x}\n" for x in lines))

    write("vocab.txt", TOKENS)
    write_config()
    documents = [[text(3, 12) + " ." for _ in range(5)] for _ in range(40)]
    write("corpus.txt", [x for lines in documents for x in [*lines, ""]])
    rows = [f"{text(2, 9)}\t{text(1, 9)}\t{i % 3}" for i in range(17)]
    write("train.tsv", ["a\tb\tlabel", *rows])
    labels = ["O", "O", "B-X", "I-X", "B-Y"]
    ner = [
        [f"{x} {rng.choice(labels)}" for x in text(2, 9).split()] + [""]
        for _ in range(17)
    ]
    write("ner.txt", [x for lines in ner for x in lines])
    swag = [
        {
            "context": text(2, 5),
            "choices": [text(1, 4), text(1, 4)],
            "label": i % 2,
        }
        for i in range(17)
    ]
    write("swag.jsonl", [json.dumps(x) for x in swag])
    paragraphs = []
    for i in range(17):
        context = text(9, 30)
        start = context.index(context.split()[i % 5])
        answer = {"text": context[start:].split()[0], "answer_start": start}
        qa = {
            "id": f"q{i}",
            "question": text(3, 9) + " ?",
            "answers": [answer] * (i % 3 > 0),
            "is_impossible": i % 3 == 0,
        }
        paragraphs.append({"context": context, "qas": [qa]})
    write("squad.json", [json.dumps({"data": [{"paragraphs": paragraphs}]})])
    write("raw.txt", [f"{TEXT} {text(3, 9).capitalize()}." for _ in range(7)])
    write("masked.txt", ["the [MASK] sees a river ."])
    pathlib.Path("latin1.txt").write_bytes("a café\n".encode("latin-1"))
    write("torn.tsv", ["a\tlabel", "a cat\tx\ty"])
    write("torn.txt", ["cat O", "dog"])
    write("torn.jsonl", [json.dumps(swag[0]), '{"context": "a cat"'])


def write_config(name: str = "config.json", rate: float = 0.0, **sizes) -> None:
    """Writes the sizes of a network, with this rate of dropout."""
    rates = dict.fromkeys(
        ("hidden_dropout_prob", "attention_probs_dropout_prob"), rate
    )
    config = json.dumps({**CONFIG, **rates, **sizes})
    pathlib.Path(name).write_text(config)


def run(command: str, code: int = 0) -> tuple[list[str], str]:
    """Runs a script; returns the files that are new, and what it said."""
    name, *words = command.split()
    before, said = files(), io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        ended = main_lib.run(importlib.import_module(name).main, [name, *words])
    assert ended == code, (command, said.getvalue())
    return sorted(files() - before), said.getvalue()


def files() -> set[str]:
    """All files here; those of TensorBoard without time and host."""
    paths = [str(x) for x in pathlib.Path().rglob("*") if x.is_file()]
    return {re.sub(r"tfevents\..*", "tfevents", path) for path in paths}


def hash_of(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def summary(value) -> list:
    """Shape, root mean square, and a mean that depends on the order."""
    value = np.asarray(value)
    if value.dtype.kind not in "fiub":
        return [x.decode() for x in value.ravel()]
    flat = value.astype("f8").ravel()
    waves = np.cos(np.arange(flat.size))
    means = np.sqrt(np.mean(flat**2)), np.mean(flat * waves)
    return [*value.shape, *(round(float(x), 7) for x in means)]


def flags_and_defaults() -> dict:
    """Flag and default -> scripts that have it."""
    scripts = {}
    for name in flags_page.SCRIPTS:
        for flag in flags.flags_of(importlib.import_module(name).Settings):
            line = f"--{flag.name}={flag.default}"
            scripts.setdefault(line, []).append(name)
    return {line: " ".join(scripts[line]) for line in sorted(scripts)}


def errors(commands: Iterable[str]) -> dict:
    """Command -> its last line; it leaves no file."""
    last = {}
    for command in commands:
        new, said = run(command, code=2)
        assert new == [], command
        last[command] = said.splitlines()[-1]
    return last


def records() -> dict:
    """Kind -> hash of the shards, and all that the script leaves."""
    hashes, left = {}, {}
    for kind, words in KINDS.items():
        left[kind], _ = run(f"{RECORDS} {words}".format(kind))
        shards = sorted(pathlib.Path(kind).glob("*.tfrecord"))
        hashes[kind] = hash_of(*(shard.read_bytes() for shard in shards))
    assert hashes["two"] == hashes["plain"]
    return {**hashes, "leaves": left["plain"]}


def pretraining(rate: float) -> dict:
    """Files, results and weights after six steps."""
    run(RECORDS.format("records"))
    write_config(num_hidden_layers=2, rate=rate)
    new, _ = run(PRETRAIN)
    lines = pathlib.Path("run/eval_results.txt").read_text().splitlines()
    results = (line.split(" = ") for line in lines)
    weights = tensor_files.read("run/model.ckpt-6")
    return {
        "leaves": new,
        "variables": hash_of(str(sorted(weights)).encode()),
        **{name: float(value) for name, value in results},
        **{
            name: summary(weights[name])
            for name in sorted(weights)
            if "/adam_" not in name
        },
    }


def task(name: str) -> dict:
    """Files of a run, its training examples, and what its export answers."""
    trained, phase = [], finetuning.phase

    def watched(settings, trainer, examples, lengths):
        trained.append(examples)
        return phase(settings, trainer, examples, lengths)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finetuning, "phase", watched)
        new, _ = run(f"run_{name} {TUNE} {TASKS[name]}")
    answers = {}
    for called, call in tf.saved_model.load("export").signatures.items():
        names = call.structured_input_signature[1]
        if names.keys() <= QUESTIONS.keys():
            answer = call(**{n: tf.constant(QUESTIONS[n]) for n in names})
            for output in sorted(answer):
                answers[f"{called} {output}"] = summary(answer[output])
    (examples,) = trained
    answers = answers or predictions()
    trained_on = hash_of(file_of(examples))
    return {"leaves": new, "train.tf_record": trained_on, **answers}


def predictions() -> dict:
    """Predictions of an export whose SavedModel ends at the logits."""
    predictor, found = Predictor.open("export", "keras"), {}
    example = {name: QUESTIONS[name][0] for name in predictor.task.inputs}
    for signature in predictor.task.signatures:
        (answer,) = predictor([predictor.signed(example, signature)])
        for output, value in sorted(answer.items()):
            columns = {output: value}
            if isinstance(value, list) and isinstance(value[0], dict):
                columns = {
                    f"{output} {key}": [x[key] for x in value]
                    for key in sorted(value[0])
                }
            for name, column in columns.items():
                found[f"{signature} {name}"] = summary(tf.constant([column]))
    return found


def file_of(examples: Examples) -> bytes:
    """Bytes of a train.tf_record with the features of these examples."""
    count = len(examples)
    batch = examples.batch(np.arange(count), 24)
    records = encoding.encode_examples(
        {
            name: batch[name].reshape(count, -1).astype(feature.dtype)
            for name, feature in {**INPUTS, **examples.schema}.items()
        }
    )
    return frames.join(records)


def scripts(commands: Iterable[str]) -> dict:
    """Command -> files it leaves; and what is in the files."""
    left = run_on_a_checkpoint(commands)
    return {
        **left,
        "learned.txt": hash_of(pathlib.Path("learned.txt").read_bytes()),
        "sentences.txt": hash_of(pathlib.Path("sentences.txt").read_bytes()),
        "features.npz": summary(np.load("features.npz")["values"]),
    }


def preprocessor(commands: Iterable[str]) -> dict:
    """Command -> files it leaves; and what the export answers."""
    left = files_left(commands)
    rows = tf.saved_model.load("text")(tf.constant([TEXT]))
    return {**left, "input_word_ids": rows["input_word_ids"].numpy().tolist()}


def hub(commands: Iterable[str]) -> dict:
    """Command -> files it leaves; and what the export answers."""
    left = run_on_a_checkpoint(commands)
    encoder = tf.saved_model.load("hub")
    goldens = json.loads(GOLDENS.read_text())
    ids = tf.constant(goldens["preprocessor"]["input_word_ids"])
    rows = {
        "input_word_ids": ids,
        "input_mask": tf.sign(ids),
        "input_type_ids": tf.zeros_like(ids),
    }
    masked = {**rows, "masked_lm_positions": tf.constant([[2, 3]])}
    return {
        **left,
        "pooled_output": summary(encoder(rows)["pooled_output"]),
        "sequence_output": summary(encoder(rows)["sequence_output"]),
        "mlm_logits": summary(encoder.mlm(masked)["mlm_logits"]),
    }


def run_on_a_checkpoint(commands: Iterable[str]) -> dict:
    """Command -> files it leaves beside a checkpoint of random weights."""
    model = networks.build_pretraining_model(BertConfig(**CONFIG), seed=3)
    tensor_files.write("bert_model.ckpt", model_files.values_of(model))
    write_config("bert_config.json")
    return files_left(commands)


def files_left(commands: Iterable[str]) -> dict:
    """Command -> files it leaves; keys of other values are skipped."""
    return {x: run(x)[0] for x in commands if " " in x}


@pytest.mark.slow
@pytest.mark.parametrize(
    "section",
    [
        # The others of their kind are in `make test`.
        pytest.param(x, marks=[pytest.mark.long] * (x in LONG))
        for x in json.loads(GOLDENS.read_text())
    ],
)
def test_golden(section, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_inputs()
    goldens = json.loads(GOLDENS.read_text())
    values = measure(section, goldens[section])
    if "WRITE_GOLDENS" in os.environ:
        goldens[section] = values
        GOLDENS.write_text(lines_of(goldens))
    assert list(values) == list(goldens[section])
    for name, value in values.items():
        assert close(value, goldens[section][name]), name


def close(value, expected) -> bool:
    """Whether values are equal, numbers within 1e-5."""
    if isinstance(value, list):
        return all(map(close, value, expected)) and len(value) == len(expected)
    if isinstance(value, float):
        return math.isclose(value, expected, rel_tol=1e-5, abs_tol=1e-5)
    return value == expected


def measure(section: str, commands: Iterable[str]) -> dict:
    """The values of a section of the goldens."""
    match section:
        case "flags":
            return flags_and_defaults()
        case "errors":
            return errors(commands)
        case "records":
            return records()
        case "pretraining":
            return pretraining(0.0)
        case "dropout":
            return pretraining(0.1)
        case "scripts":
            return scripts(commands)
        case "preprocessor":
            return preprocessor(commands)
        case "hub":
            return hub(commands)
    return task(section)


def lines_of(goldens: dict) -> str:
    """JSON with one line for each value."""
    parts = []
    for section, values in goldens.items():
        lines = (f" {json.dumps(x)}: {json.dumps(values[x])}" for x in values)
        parts.append(f'"{section}": {{\n' + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
