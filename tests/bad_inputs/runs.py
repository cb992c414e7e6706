"""Scripts and their flags, over a folder of good files."""

import pathlib

import convert_checkpoint
import create_pretraining_data
import create_vocab
import demo
import doctor
import export_hub
import extract_features
import fill_mask
import predict
import prepare_corpus
import run_classifier
import run_ner
import run_pretraining
import run_squad
import run_swag

CHECKPOINT = "{folder}/model/bert_model.ckpt"
RECORDS = {"max_seq_length": 31, "max_predictions_per_seq": 5}
CONFIG = "{folder}/model/bert_config.json"
VOCABULARY = "{folder}/model/vocab.txt"


def _converts(path: str) -> tuple:
    flags = {"input": path, "to": "google", "output": "{folder}/out"}
    return convert_checkpoint, flags


def _prepares(path: str) -> tuple:
    flags = {"input_file": path, "output_file": "{folder}/out"}
    return prepare_corpus, {**flags, "num_processes": 1}


def _trains(path: str) -> tuple:
    return run_pretraining, {
        "input_file": path,
        "output_dir": "{folder}/out",
        "bert_config_file": CONFIG,
        "do_train": True,
        "num_train_steps": 1,
        **RECORDS,
    }


def _tunes(script, **flags) -> tuple:
    return script, {
        "output_dir": "{folder}/out",
        "max_seq_length": 31,
        "train_batch_size": 1,
        "bert_config_file": CONFIG,
        "vocab_file": VOCABULARY,
        "init_checkpoint": CHECKPOINT,
        **flags,
    }


RUNS = {  # name -> script and flags
    "convert_google": _converts(CHECKPOINT),
    "convert_huggingface": _converts("{folder}/hf"),
    "create_pretraining_data": (
        create_pretraining_data,
        {
            "input_file": "{folder}/corpus.txt",
            "vocab_file": VOCABULARY,
            "output_file": "{folder}/out",
            "num_processes": 1,
        },
    ),
    "create_vocab": (
        create_vocab,
        {
            "input_file": "{folder}/corpus.txt",
            "output_file": "{folder}/out",
            "num_processes": 1,
        },
    ),
    "demo": (demo, {"model": "{folder}/records", "port": 0}),
    "doctor_checkpoint": (doctor, {"init_checkpoint": CHECKPOINT}),
    "export_hub": (
        export_hub,
        {
            "model_checkpoint_path": CHECKPOINT,
            "vocab_file": VOCABULARY,
            "export_path": "{folder}/out",
        },
    ),
    "export_hub_mlm": (
        export_hub,
        {
            "model_checkpoint_path": CHECKPOINT,
            "export_type": "model_with_mlm",
            "export_path": "{folder}/out",
        },
    ),
    "extract_features": (
        extract_features,
        {
            "init_checkpoint": CHECKPOINT,
            "bert_config_file": CONFIG,
            "vocab_file": VOCABULARY,
            "max_seq_length": 31,
            "layers": -1,
            "input_file": "{folder}/masks.txt",
            "output_file": "{folder}/out.jsonl",
        },
    ),
    "fill_mask": (
        fill_mask,
        {
            "init_checkpoint": CHECKPOINT,
            "input_file": "{folder}/masks.txt",
        },
    ),
    "predict": (
        predict,
        {"model": "{folder}/model", "input_file": "{folder}/columns.csv"},
    ),
    "prepare_corpus": _prepares("{folder}/corpus.jsonl"),
    "prepare_corpus_json": _prepares("{folder}/corpus.json"),
    "prepare_corpus_text": _prepares("{folder}/corpus.txt"),
    "run_classifier": _tunes(
        run_classifier,
        do_train=True,
        train_file="{folder}/table.tsv",
        do_predict=True,
        predict_file="{folder}/to_predict.tsv",
        task_name="tsv",
        text_column="t",
        label_column="l",
    ),
    "run_ner": _tunes(
        run_ner, do_predict=True, predict_file="{folder}/words.txt"
    ),
    "run_pretraining": _trains("{folder}/records/good.tfrecord"),
    "run_pretraining_bare": _trains("{folder}/bare/good.tfrecord"),
    "run_squad": _tunes(
        run_squad,
        do_train=True,
        train_file="{folder}/squad.json",
        max_query_length=7,
        doc_stride=5,
    ),
    "run_swag": _tunes(
        run_swag, do_train=True, train_file="{folder}/choices.csv"
    ),
}


def command(name: str, folder: pathlib.Path, **changed) -> tuple:
    """Returns the script of a run, its flags and its exit code."""
    script, flags = RUNS[name]
    flags = {
        key: value.format(folder=folder) if isinstance(value, str) else value
        for key, value in {**flags, **changed}.items()
        if value is not None
    }
    return script, flags, 1 if script is doctor else 2
