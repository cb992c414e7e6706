"""The folder of a run: who claims it, and what it must not hold."""

import dataclasses
import json

import pytest

from bert.common import command_line, flags
from bert.common import main as common_main
from bert.common.errors import UserError
from bert.common.jobs import locks
from bert.data.text import vocabulary
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.formats.model_folder import ModelFiles, ModelFolder
from bert.runs import opening, start, written_files
from bert.tasks.features import settings as features_settings
from bert.tasks.pretraining.settings import Settings
from bert.tasks.run import OutputFolder
from tests.helpers import small

BEFORE = {
    "random_seed": 3,
    "do_lower_case": True,
    "train_batch_size": 32,
    "log_steps": 100,
    "records": "aa",
    "lengths": (16, 32, 48),
    "environment": {"tensorflow": "2.20.0", "threads": 2, "dropout": "2"},
}


def warning(capsys, rates=(0.5, 0.5), **changed):
    before = {**flags.as_dict(Settings()), **BEFORE}
    now = {**before, **changed}
    decisive = flags.as_dict(Settings(), "resume")
    start.warn_of_changes(before, now, [*decisive, "do_lower_case"], rates)
    return capsys.readouterr().err


def test_settings_that_change_no_result_are_not_reported(capsys):
    assert warning(capsys) == ""
    assert warning(capsys, log_steps=5, output_dir="there") == ""


BITS = "it is no longer bit-reproducible"
OTHERS = f"examples are skipped or repeated, {BITS}"
JUMP = f"the learning rate of the next step was 0, is 0.000333, {BITS}"
STEPS = {"num_train_steps": 3}
STEPS_CHANGED = "--num_train_steps was 100000, is 3"


def test_the_former_name_of_the_optimizer_is_no_change(capsys):
    before = {**flags.as_dict(Settings()), **BEFORE, "optimizer": "adamw"}
    now = {**before, "optimizer": "bert_adam"}
    start.warn_of_changes(before, now, ["optimizer"], (0.5, 0.5))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("changed", "message", "effects"),
    [
        ({"random_seed": 5}, "--random_seed was 3, is 5", OTHERS),
        ({"do_lower_case": False}, "--do_lower_case was True, is False", BITS),
        (
            {"train_batch_size": 16, "records": "bb"},
            "--train_batch_size was 32, is 16; the records differ",
            OTHERS,
        ),
        (
            {"optimizer": "lamb"},
            "--optimizer was bert_adam, is lamb",
            f"the moments are from another update rule, {BITS}",
        ),
        (
            {"lengths": (16, 48)},
            "batches are padded to other lengths",
            BITS,
        ),
        (
            {"environment": {"tensorflow": "2.21.0", "threads": 2}},
            "dropout was 2, is None; tensorflow was 2.20.0, is 2.21.0",
            BITS,
        ),
        ({**STEPS, "rates": (0.0, 0.000333)}, STEPS_CHANGED, JUMP),
        ({**STEPS, "rates": (None, 0.000333)}, STEPS_CHANGED, BITS),
        (
            STEPS,
            STEPS_CHANGED,
            "the learning rate of the next step is the same",
        ),
        (
            {**STEPS, "do_lower_case": False},
            f"{STEPS_CHANGED}; --do_lower_case was True, is False",
            BITS,
        ),
    ],
)
def test_changes_and_effects_are_on_one_line(capsys, changed, message, effects):
    assert warning(capsys, **changed) == (
        f"warning: {message}: the run continues: {effects}\n"
    )


@pytest.mark.parametrize(
    ("beside", "checkpoint"),
    [
        ("", "bert_model.ckpt"),
        ("", ""),
        ("assets", ""),
        ("", "best"),
        ("", "best/model.ckpt-7"),
        ("best", "best/model.ckpt-7"),
    ],
)
def test_the_vocabulary_of_a_checkpoint_is_found(tmp_path, beside, checkpoint):
    for name in ("assets", "best"):
        (tmp_path / "run" / name).mkdir(parents=True)
    path = tmp_path / "run" / beside / "vocab.txt"
    tokens = [*vocabulary.SPECIAL_TOKENS, "the", "tree"]
    vocabulary.write_vocabulary(str(path), tokens)
    other = Tokenizer("other.txt", tokens=[*tokens[:-1], "cat"])
    prefix = str(tmp_path / "run" / checkpoint)
    folder = ModelFolder(prefix, "google", ModelFiles())
    folder.check_vocabulary(Tokenizer(str(path)))
    with pytest.raises(UserError, match=":7: token 'cat'; expected 'tree'"):
        folder.check_vocabulary(other)
    path.unlink()
    folder = ModelFolder(prefix, "google", ModelFiles())
    folder.check_vocabulary(other)


A, B = ["a.py", "--x=b c"], ["a.py"]


def test_each_command_of_a_run_is_kept_once(tmp_path, monkeypatch):
    path = str(tmp_path / "run")
    for words in [A, A, B, B, A]:
        monkeypatch.setattr("sys.argv", words)
        written_files.write_inputs(
            OutputFolder(path, path), small.config(), None
        )
    text = (tmp_path / "run" / "command.txt").read_text()
    assert text == "a.py '--x=b c'\na.py\na.py '--x=b c'\n"


def test_a_claimed_folder_that_stays_empty_is_removed(tmp_path):
    run = tmp_path / "runs" / "run"
    with opening.claim(str(run)):
        assert [path.name for path in run.iterdir()] == [".lock"]
    assert list(tmp_path.iterdir()) == []
    with opening.claim(str(run)):
        (run / "checkpoint").touch()
    assert [path.name for path in run.iterdir()] == ["checkpoint"]
    (tmp_path / "empty").mkdir()
    with opening.claim(str(tmp_path / "empty")):
        pass
    assert (tmp_path / "empty").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("file", "is a file; expected a folder"),
        ("file/run", "cannot be read or written: Not a directory; check that"),
    ],
)
def test_a_folder_that_cannot_be_claimed(tmp_path, capsys, name, message):
    (tmp_path / "file").touch()
    folder = str(tmp_path / name)

    def claim(argv):
        with opening.claim(folder):
            pass

    assert common_main.run(claim, []) == 2
    assert capsys.readouterr().err.startswith(f"error: {folder}: {message}")


def test_remote_storage_has_no_locks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with opening.claim("gs://b/run"), opening.claim("gs://b/run"):
        assert list(tmp_path.iterdir()) == []


@pytest.fixture
def here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def opened(**named):
    named = {"output_dir": "run", "do_train": True, **named}
    settings = dataclasses.replace(Settings(), **named)
    return opening.open_folder(settings)


def test_a_run_that_trains_claims_its_folder(here):
    with opened() as folder:
        assert folder.is_chief and folder.path == "run"
        with pytest.raises(UserError, match=r"^run: in use by process \d+ on "):
            opened().__enter__()
        with opened(do_train=False):
            pass
    with opened():
        pass


@pytest.mark.parametrize("index", [0, 1])
def test_of_several_workers_the_first_claims_and_prints(
    here, monkeypatch, tmp_path, capsys, index
):
    cluster = {
        "cluster": {"worker": ["a:1", "b:2"]},
        "task": {"type": "worker", "index": index},
    }
    monkeypatch.setenv("TF_CONFIG", json.dumps(cluster))
    (tmp_path / "run").mkdir()
    with locks.hold(str(tmp_path / "run" / ".lock"), "run"):
        if index == 0:
            with pytest.raises(UserError, match="in use"):
                opened().__enter__()
            return
        with opened() as folder:
            print("not shown")
            assert not folder.is_chief
            written_files.write_inputs(folder, small.config(), None)
    assert list((tmp_path / "run").iterdir()) == []
    assert not list(tmp_path.glob("worker-*"))
    assert capsys.readouterr().out == ""


def test_a_folder_of_another_network_is_rejected(here):
    with opened() as folder:
        written_files.write_inputs(folder, small.config(vocab_size=7), None)
        with pytest.raises(UserError, match="holds a run with another config"):
            opening.check_network(folder.shared, small.config(), None)


def test_a_checkpoint_of_the_current_folder_is_not_that_of_a_run(
    tmp_path, monkeypatch
):
    """A script without output_dir continues no run."""
    (tmp_path / "checkpoint").touch()
    monkeypatch.chdir(tmp_path)
    argv = ["extract_features.py"]
    argv += [f"--{x}_file=x" for x in ("input", "vocab", "bert_config")]
    argv += ["--output_file=x.jsonl", "--init_checkpoint=missing"]
    settings = command_line.parse(argv, features_settings.Settings, "")
    with pytest.raises(UserError, match="missing: no such checkpoint"):
        features_settings.check(settings)
