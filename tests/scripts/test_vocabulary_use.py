"""The vocabulary of a command beside its checkpoint, run, text and export."""

import json
import os
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
from common import flags
from common import main as common_main
from common.errors import UserError
from data.text import vocabulary_checks
from modeling.formats.model_folder import ModelFolder
from tasks.classification import hub_module
from tasks.features import run as features
from tasks.features import settings as features_settings
from tasks.fill_mask import run as fill_mask_run
from tests.helpers import classifier_files, small, text

TASKS = (run_classifier, run_ner, run_squad, run_swag)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a checkpoint, its vocabulary, and a task's files."""
    folder = tmp_path_factory.mktemp("vocabulary_use")
    classifier_files.write_model(folder)
    classifier_files.write_task(folder)
    (folder / "words.txt").write_text("the O\ntree O\n")
    question = {"id": 7, "question": "the tree", "context": "the tree sees"}
    (folder / "squad.json").write_text(json.dumps([question]))
    choices = {"context": "the tree", "choices": ["sees", "follows"]}
    (folder / "choices.jsonl").write_text(json.dumps(choices) + "\n")
    return folder


def write_tokens(path, tokens):
    path.write_text("".join(f"{token}\n" for token in tokens))
    return path


def changed(**tokens):
    """The vocabulary with some tokens replaced."""
    return [tokens.get(token, token) for token in text.VOCABULARY]


@pytest.fixture
def flags_of(folder, tmp_path):
    def flags_of(script, **named):
        found = {
            "vocab_file": folder / "vocab.txt",
            "bert_config_file": folder / "bert_config.json",
            "output_dir": tmp_path / "run",
            "max_seq_length": small.POSITIONS,
            **named,
        }
        if script is run_classifier:
            found = {"task_name": "mrpc", "data_dir": folder, **found}
        if script is run_squad:
            found["max_query_length"] = 7
        return found

    return flags_of


@pytest.mark.parametrize("script", TASKS)
def test_a_vocabulary_that_no_export_holds_is_rejected_before_training(
    script, flags_of, tmp_path, run_script
):
    path = write_tokens(tmp_path / "long.txt", changed(tree="t" * 257))
    named = flags_of(script, vocab_file=path, export_dir=tmp_path / "export")
    code, _, error = run_script(script, **named)
    line = text.VOCABULARY.index("tree") + 1
    assert code == 2
    assert error.startswith(f"error: {path}:{line}: token 'ttttttttt'... has ")
    assert not (tmp_path / "run").exists()


def test_a_preprocessor_rejects_it_too(tmp_path, run_script):
    path = write_tokens(tmp_path / "long.txt", changed(tree="t" * 257))
    code, _, error = run_script(
        export_hub,
        export_type="preprocessing",
        vocab_file=path,
        export_path=tmp_path / "export",
    )
    assert code == 2 and "has 257 bytes; expected at most 256" in error


OTHER = changed(tree="house", house="tree")  # as many tokens, other ids
SCRIPTS = (
    *TASKS,
    extract_features,
    fill_mask,
    run_pretraining,
    export_hub,
    convert_checkpoint,
)


@pytest.fixture
def command(folder, flags_of, tmp_path, request):
    """The command line of a script with a checkpoint and a vocabulary."""

    def command(script, checkpoint, vocab_file, **named):
        named = flags_of(
            script, vocab_file=vocab_file, init_checkpoint=checkpoint, **named
        )
        if script in TASKS:
            named["export_dir"] = tmp_path / "export"
        if script is extract_features:
            named["input_file"] = folder / "train.tsv"
            named |= {"output_file": tmp_path / "vectors", "layers": -1}
        if script is run_pretraining:
            named["input_file"] = request.getfixturevalue("records")
            named["do_train"] = True
            del named["vocab_file"]  # that of the records
        if script in (extract_features, fill_mask):
            del named["output_dir"]
        if script in (fill_mask, run_pretraining):
            del named["max_seq_length"]
        if script is export_hub:
            named = {
                "model_checkpoint_path": checkpoint,
                "vocab_file": vocab_file,
                "export_path": tmp_path / "export",
            }
        if script is convert_checkpoint:
            named = {
                "from": "google",
                "to": "huggingface",
                "input": checkpoint,
                "vocab_file": vocab_file,
                "output": tmp_path / "converted",
            }
        return [script.__name__, *(f"--{k}={v}" for k, v in named.items())]

    return command


@pytest.fixture(scope="module")
def records(folder):
    """Records that were made with `OTHER`."""
    text.write_corpus(folder / "corpus.txt", 7)
    argv = {
        "input_file": folder / "corpus.txt",
        "output_file": folder / "records" / "0.tfrecord",
        "vocab_file": write_tokens(folder / "other.txt", OTHER),
        "max_seq_length": small.POSITIONS,
        "max_predictions_per_seq": 3,
        "dupe_factor": 1,
        "num_processes": 1,
    }
    (folder / "records").mkdir()
    create_pretraining_data.main(
        ["", *(f"--{name}={value}" for name, value in argv.items())]
    )
    return folder / "records" / "0.tfrecord"


@pytest.mark.parametrize("script", SCRIPTS)
def test_another_vocabulary_than_the_one_beside_the_checkpoint_is_rejected(
    script, command, folder, tmp_path, capsys
):
    path = write_tokens(tmp_path / "other.txt", OTHER)
    line = text.VOCABULARY.index("tree") + 1
    argv = command(script, folder / "bert_model.ckpt", path)
    assert common_main.run(script.main, argv) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: ")
    assert error.endswith(
        f".txt:{line}: token 'house'; expected 'tree', as in "
        f"{folder}/vocab.txt; pass --vocab_file={folder}/vocab.txt"
    )
    assert os.listdir(tmp_path) == ["other.txt"]


def test_doctor_finds_it(folder, tmp_path, run_script):
    path = write_tokens(tmp_path / "other.txt", OTHER)
    code, out, _ = run_script(
        doctor, vocab_file=path, init_checkpoint=folder / "bert_model.ckpt"
    )
    line = text.VOCABULARY.index("tree") + 1
    assert code == 1
    assert f"wrong: {path}:{line}: token 'house'; expected 'tree'" in out


# run_ner.py misses the labels of the run before its vocabulary.
@pytest.mark.parametrize("script", (run_classifier, run_squad, run_swag))
def test_a_run_goes_on_with_its_own_vocabulary_alone(
    script, flags_of, folder, tmp_path, run_script
):
    """No vocabulary is beside the checkpoint."""
    (tmp_path / "run").mkdir()
    own = write_tokens(tmp_path / "run" / "vocab.txt", OTHER)
    shutil.copy(folder / "bert_config.json", tmp_path / "run")
    named = flags_of(script, export_dir=tmp_path / "export")
    code, _, error = run_script(script, **named)
    line = text.VOCABULARY.index("tree") + 1
    assert code == 2
    assert error == (
        f"error: {folder}/vocab.txt:{line}: token 'tree'; expected 'house', "
        f"as in {own}; pass another --output_dir, or the run's vocabulary\n"
    )
    assert own.read_text().splitlines() == OTHER


@pytest.mark.parametrize("script", TASKS)
def test_unknown_words_and_casing_are_warned_of(
    script, flags_of, folder, tmp_path, run_script
):
    files = {
        run_classifier: folder / "test.tsv",
        run_ner: folder / "words.txt",
        run_squad: folder / "squad.json",
        run_swag: folder / "choices.jsonl",
    }
    path = write_tokens(tmp_path / "other.txt", changed(tree="Tree"))
    if script is run_ner:
        task = {"labels": ["O"], "kind": "any"}
        (tmp_path / "task.json").write_text(json.dumps(task))
    (tmp_path / "bert_model.ckpt.meta").touch()  # a part of a checkpoint
    for vocab_file, count in ((folder / "vocab.txt", 0), (path, 1)):
        named = flags_of(
            script,
            vocab_file=vocab_file,
            predict_file=files[script],
            init_checkpoint=tmp_path / "bert_model.ckpt",
        )
        code, _, error = run_script(script, "--do_predict", **named)
        assert code == 2 and "bert_model.ckpt: no such checkpoint" in error
        assert error.count("texts are [UNK]; expected at most 1%") == count
        assert error.count("has tokens with capital letters") == count


def test_unknown_words_of_sentences_are_warned_of(
    folder, tmp_path, run_script, command
):
    (tmp_path / "model").mkdir()
    for path in folder.glob("bert_*"):
        shutil.copy(path, tmp_path / "model")
    model = tmp_path / "model" / "bert_model.ckpt"
    vocab_file = write_tokens(tmp_path / "other.txt", changed(tree="Tree"))
    argv = command(extract_features, model, vocab_file)
    settings = flags.parse(argv, extract_features.Settings, "")
    extraction = features_settings.check(settings)
    warning = "texts are [UNK]; expected at most 1%"
    with pytest.MonkeyPatch.context() as patch:
        logged = []
        patch.setattr(vocabulary_checks, "say", logged.append)
        assert len(list(features.Reader(extraction).read())) > 1
    assert sum(warning in line for line in logged) == 1
    (tmp_path / "lines.txt").write_text("the tree sees [MASK]\n")
    with pytest.MonkeyPatch.context() as patch:  # the model has no such head
        patch.setattr(fill_mask_run, "check_head", lambda path: None)
        _, _, error = run_script(
            fill_mask,
            init_checkpoint=model,
            vocab_file=vocab_file,
            input_file=tmp_path / "lines.txt",
        )
    assert error.count(warning) == 1


@pytest.mark.parametrize("name", ["vocab.txt", "words.txt"])
def test_a_hub_modules_own_vocabulary_is_meant(
    folder, tmp_path, name, monkeypatch
):
    monkeypatch.setattr(ModelFolder, "casing", (None, None))
    (tmp_path / "hub" / "assets").mkdir(parents=True)
    (tmp_path / "hub" / "saved_model.pb").touch()
    shutil.copy(folder / "vocab.txt", tmp_path / "hub" / "assets" / name)
    path = write_tokens(tmp_path / "other.txt", OTHER)
    settings = flags.replace(
        run_classifier.Settings(),
        vocab_file=str(path),
        bert_hub_module_handle=str(tmp_path / "hub"),
    )
    with pytest.raises(UserError, match=f"/hub/assets/{name}"):
        hub_module.open_module(settings).check_vocabulary()


@pytest.mark.parametrize(("share", "count"), [(0.01, 0), (0.0613, 1)])
def test_unknown_words_of_records_are_warned_of(
    command, folder, records, tmp_path, capsys, share, count
):
    shutil.copytree(records.parent, tmp_path / "records")
    path = tmp_path / "records" / "_0.manifest.json"
    manifest = json.loads(path.read_text())
    assert manifest["shares"]["unknown"] == 0
    manifest["shares"]["unknown"] = share
    path.write_text(json.dumps(manifest))
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "x.ckpt.meta").touch()  # a part of a checkpoint
    argv = command(
        run_pretraining, tmp_path / "model" / "x.ckpt", folder / "other.txt"
    )
    argv.append(f"--input_file={tmp_path}/records/0.tfrecord")
    with pytest.raises(UserError, match="no such checkpoint"):
        run_pretraining.main(argv)
    error = capsys.readouterr().err
    warning = "warning: 6.1% of the tokens of the records are [UNK]; "
    assert error.count(warning) == error.count("[UNK]") == count
