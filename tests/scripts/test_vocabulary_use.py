"""The vocabulary of a command beside its checkpoint, run, text and export."""

import json
import os
import re
import shutil

import pytest

import convert_checkpoint
import create_pretraining_data
import doctor
import export_hub
import extract_features
import fill_mask
import run_classifier
import run_ner
import run_pretraining
import run_squad
import run_swag
from bert.common import command_line
from bert.common import main as common_main
from bert.common.errors import UserError
from bert.data.text import vocabulary_checks
from bert.data.text.casing import Casing
from bert.modeling.formats import saved_models
from bert.modeling.formats.model_folder import ModelFiles, ModelFolder
from bert.runs import feature_extraction
from bert.tasks.features import settings as features_settings
from tests.helpers import classifier_files, small, text

TASKS = {  # script -> file that it predicts
    run_classifier: "test.tsv",
    run_ner: "words.txt",
    run_squad: "squad.json",
    run_swag: "choices.jsonl",
}
LINE = text.VOCABULARY.index("tree") + 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A checkpoint, its vocabulary and config, files of each task, records."""
    folder = tmp_path_factory.mktemp("vocabulary_use")
    classifier_files.write_model(folder)
    classifier_files.write_task(folder)
    (folder / "words.txt").write_text("the O\ntree O\n")
    question = {"id": 7, "question": "the tree", "context": "the tree sees"}
    (folder / "squad.json").write_text(json.dumps([question]))
    choices = {"context": "the tree", "choices": ["sees", "follows"]}
    (folder / "choices.jsonl").write_text(json.dumps(choices) + "\n")
    text.write_corpus(folder / "corpus.txt", 7)
    (folder / "records").mkdir()
    command = (
        f"--input_file={folder}/corpus.txt --max_predictions_per_seq=3 "
        f"--vocab_file={write_tokens(folder / 'other.txt', OTHER)} "
        f"--output_file={folder}/records/0.tfrecord --dupe_factor=1 "
        f"--max_seq_length={small.POSITIONS} --num_processes=1"
    )
    create_pretraining_data.main(["", *words_of(command)])
    return folder


def words_of(line):
    """The flags of a line; their values may have spaces."""
    return re.split(" +(?=--)", line.strip())


def write_tokens(path, tokens):
    path.write_text("".join(f"{token}\n" for token in tokens))
    return path


def changed(**tokens):
    """The vocabulary with some tokens replaced."""
    return [tokens.get(token, token) for token in text.VOCABULARY]


OTHER = changed(tree="house", house="tree")  # as many tokens, other ids


def argv_of(script, folder, output, checkpoint, vocab_file):
    """The words of a command with a checkpoint and a vocabulary."""
    model = f"--bert_config_file={folder}/bert_config.json "
    model += f"--init_checkpoint={checkpoint} " if checkpoint else ""
    tuning = (
        f"{model} --vocab_file={vocab_file} --output_dir={output}/run "
        f"--max_seq_length={small.POSITIONS} --export_dir={output}/export"
    )
    line = {
        run_classifier: f"{tuning} --task_name=mrpc --data_dir={folder}",
        run_ner: tuning,
        run_squad: f"{tuning} --max_query_length=7",
        run_swag: tuning,
        extract_features: f"{model} --vocab_file={vocab_file} --layers=-1 "
        f"--input_file={folder}/train.tsv --output_file={output}/vectors "
        f"--max_seq_length={small.POSITIONS}",
        fill_mask: f"{model} --vocab_file={vocab_file}",
        run_pretraining: f"{model} --do_train --output_dir={output}/run "
        f"--input_file={folder}/records/0.tfrecord",  # made with `OTHER`
        export_hub: f"--model_checkpoint_path={checkpoint} "
        f"--vocab_file={vocab_file} --export_path={output}/export",
        convert_checkpoint: f"--to=huggingface "
        f"--input={checkpoint} --vocab_file={vocab_file} "
        f"--output={output}/converted",
    }[script]
    return [script.__name__, *words_of(line)]


@pytest.fixture
def fail(folder, tmp_path, capsys):
    """Runs a script, which must fail; returns its last line and the others."""

    def run(script, checkpoint, vocab_file, *words):
        argv = argv_of(script, folder, tmp_path, checkpoint, vocab_file)
        assert common_main.run(script.main, [*argv, *words]) == 2
        *others, last = capsys.readouterr().err.splitlines()
        return last, "\n".join(others)

    return run


def test_a_vocabulary_that_no_export_holds_is_rejected_before_training(
    fail, folder, tmp_path, run_script
):
    path = write_tokens(tmp_path / "long.txt", changed(tree="t" * 257))
    error, _ = fail(run_classifier, None, path)
    assert error.startswith(f"error: {path}:{LINE}: token 'ttttttttt'")
    named = {"vocab_file": path, "export_path": tmp_path / "export"}
    code, _, error = run_script(
        export_hub, export_type="preprocessing", **named
    )
    assert code == 2 and "257 bytes; expected " in error
    assert os.listdir(tmp_path) == ["long.txt"]


@pytest.mark.parametrize(
    "script",
    [
        *(run_classifier, run_ner, extract_features, fill_mask),
        *(run_pretraining, export_hub, convert_checkpoint),
    ],
)
def test_another_vocabulary_than_the_one_beside_the_checkpoint_is_rejected(
    script, fail, folder, tmp_path
):
    path = write_tokens(tmp_path / "other.txt", OTHER)
    error, _ = fail(script, folder / "bert_model.ckpt", path)
    assert error.startswith("error: ")
    assert error.endswith(
        f".txt:{LINE}: token 'house'; expected 'tree', as in "
        f"{folder}/vocab.txt; pass --vocab_file={folder}/vocab.txt"
    )
    assert os.listdir(tmp_path) == ["other.txt"]


def test_doctor_finds_it(folder, tmp_path, run_script):
    path = write_tokens(tmp_path / "other.txt", OTHER)
    code, out, _ = run_script(
        doctor, vocab_file=path, init_checkpoint=folder / "bert_model.ckpt"
    )
    assert code == 1
    assert f"wrong: {path}:{LINE}: token 'house'; expected 'tree'" in out


@pytest.mark.parametrize("slot", ["house", "[unused7]"])
def test_a_run_goes_on_with_its_own_vocabulary_alone(
    fail, folder, tmp_path, slot
):
    """No vocabulary is beside the checkpoint; a word in a slot is another."""
    (tmp_path / "run").mkdir()
    tokens = changed(tree=slot, house="tree")
    path = write_tokens(tmp_path / "run" / "vocab.txt", tokens)
    shutil.copy(folder / "bert_config.json", tmp_path / "run")
    error, _ = fail(run_classifier, None, folder / "vocab.txt")
    assert error == (
        f"error: {folder}/vocab.txt:{LINE}: token 'tree'; expected {slot!r}, "
        f"as in {path}; pass another --output_dir, or the run's vocabulary"
    )
    assert path.read_text().splitlines() == tokens


@pytest.mark.parametrize("script", TASKS)
def test_unknown_words_and_casing_are_warned_of(script, fail, folder, tmp_path):
    path = write_tokens(tmp_path / "other.txt", changed(tree="Tree"))
    if script is run_ner:
        task = {"labels": ["O"], "kind": "any"}
        (tmp_path / "task.json").write_text(json.dumps(task))
    checkpoint = tmp_path / "bert_model.ckpt"
    (tmp_path / "bert_model.ckpt.meta").touch()  # a part of a checkpoint
    words = ["--do_predict", f"--predict_file={folder}/{TASKS[script]}"]
    words.append("--do_lower_case")
    for vocab_file, count in ((folder / "vocab.txt", 0), (path, 1)):
        error, before = fail(script, checkpoint, vocab_file, *words)
        assert "bert_model.ckpt: no such checkpoint" in error
        assert before.count("texts are [UNK]; expected at most 1%") == count
        assert before.count("has some tokens with capital letters") == count


def test_unknown_words_of_sentences_are_warned_of(
    folder, tmp_path, monkeypatch
):
    (tmp_path / "model").mkdir()
    for path in folder.glob("bert_*"):
        shutil.copy(path, tmp_path / "model")
    model = tmp_path / "model" / "bert_model.ckpt"
    vocab_file = write_tokens(tmp_path / "other.txt", changed(tree="Tree"))
    argv = argv_of(extract_features, folder, tmp_path, model, vocab_file)
    settings = command_line.parse(argv, extract_features.Settings, "")
    extraction = features_settings.check(settings)
    logged = []
    monkeypatch.setattr(vocabulary_checks, "log", logged.append)
    lines = tmp_path / "lines.txt"
    shutil.copy(extraction.settings.input_file, lines)
    feature_extraction.check_first_rows(extraction, [str(lines)])
    warning = "texts are [UNK]; expected at most 1%"
    assert sum(warning in line for line in logged) == 1


def test_a_hub_modules_own_vocabulary_is_meant(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(saved_models, "read_casing", lambda path: Casing())
    (tmp_path / "assets").mkdir()
    (tmp_path / "saved_model.pb").touch()
    shutil.copy(folder / "vocab.txt", tmp_path / "assets" / "words.txt")
    other = str(write_tokens(tmp_path / "other.txt", OTHER))
    with pytest.raises(UserError, match="/assets/words.txt"):
        ModelFolder.open(
            str(tmp_path), ModelFiles(vocab_file=other)
        ).check_vocabulary()


@pytest.mark.parametrize(("share", "count"), [(0.01, 0), (0.0613, 1)])
def test_unknown_words_of_records_are_warned_of(
    fail, folder, tmp_path, share, count
):
    shutil.copytree(folder / "records", tmp_path / "records")
    path = tmp_path / "records" / "_0.manifest.json"
    manifest = json.loads(path.read_text())
    assert manifest["shares"]["unknown"] == 0
    manifest["shares"]["unknown"] = share
    path.write_text(json.dumps(manifest))
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "x.ckpt.meta").touch()  # a part of a checkpoint
    checkpoint = tmp_path / "model" / "x.ckpt"
    words = f"--input_file={tmp_path}/records/0.tfrecord"
    error, before = fail(run_pretraining, checkpoint, None, words)
    assert "no such checkpoint" in error
    warning = "warning: 6.1% of the tokens of the records are [UNK]; "
    assert before.count(warning) == before.count("[UNK]") == count
