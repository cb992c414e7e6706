"""Claims of a folder, and warnings about a run that is resumed."""

import pytest

from common import flags
from common import main as common_main
from common.errors import UserError
from tasks import output_dir
from tasks.pretraining.settings import Settings
from tests.helpers import small

BEFORE = {
    "random_seed": 3,
    "do_lower_case": True,
    "train_batch_size": 32,
    "log_steps": 100,
    "records": "aa",
    "environment": {"tensorflow": "2.20.0", "threads": 2, "dropout": "2"},
}


def warning(capsys, **changed):
    now = {**flags.as_dict(Settings()), **BEFORE, **changed}
    decisive = flags.as_dict(Settings(), "resume")
    output_dir.warn_of_changes(BEFORE, now, decisive)
    return capsys.readouterr().err


def test_settings_that_change_no_result_are_not_reported(capsys):
    assert warning(capsys) == ""
    assert warning(capsys, log_steps=5, output_dir="there") == ""


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"random_seed": 5}, "--random_seed was 3, is 5"),
        ({"do_lower_case": False}, "--do_lower_case was True, is False"),
        ({"train_batch_size": 16}, "--train_batch_size was 32, is 16"),
        ({"records": "bb"}, "the records differ"),
        (
            {"environment": {"tensorflow": "2.21.0", "threads": 2}},
            "dropout was 2, is None; tensorflow was 2.20.0, is 2.21.0",
        ),
        (
            {"environment": {**BEFORE["environment"], "threads": 8}},
            "threads was 2, is 8",
        ),
    ],
)
def test_changes_are_reported_in_one_line(capsys, changed, message):
    assert warning(capsys, **changed) == (
        f"warning: {message}: the run continues, but is no longer "
        "bit-reproducible, and may see other examples\n"
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
    path.write_text("the\ntree\n")
    other = tmp_path / "other.txt"
    other.write_text("the\ncat\n")
    prefix = str(tmp_path / "run" / checkpoint)
    output_dir.check_beside(prefix, str(path))
    with pytest.raises(UserError, match=":2: token 'cat'; expected 'tree'"):
        output_dir.check_beside(prefix, str(other))
    path.unlink()
    output_dir.check_beside(prefix, str(other))


def test_each_command_of_a_run_is_kept_once(tmp_path, monkeypatch):
    folder = str(tmp_path / "run")
    for words in (["a.py", "--x=b c"], ["a.py", "--x=b c"], ["a.py"]):
        monkeypatch.setattr("sys.argv", words)
        output_dir.prepare(folder, small.config(), None)
    text = (tmp_path / "run" / "command.txt").read_text()
    assert text == "a.py '--x=b c'\na.py\n"


def test_a_claimed_folder_that_stays_empty_is_removed(tmp_path):
    run = tmp_path / "a" / "b" / "run"
    with output_dir.claim(str(run)):
        assert [path.name for path in run.iterdir()] == [".lock"]
    assert list(tmp_path.iterdir()) == []
    with output_dir.claim(str(run)):
        (run / "checkpoint").touch()
    assert [path.name for path in run.iterdir()] == ["checkpoint"]
    (tmp_path / "empty").mkdir()
    with output_dir.claim(str(tmp_path / "empty")):
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
        with output_dir.claim(folder):
            pass

    assert common_main.run(claim, []) == 2
    assert capsys.readouterr().err.startswith(f"error: {folder}: {message}")


def test_a_missing_vocabulary_is_not_blamed_on_the_folder(tmp_path, capsys):
    run, path = tmp_path / "run", tmp_path / "vocab.txt"

    def prepare(argv):
        output_dir.prepare(str(run), small.config(), str(path))

    assert common_main.run(prepare, []) == 2
    assert capsys.readouterr().err.startswith(f"error: {path}: cannot be read")


def test_remote_storage_has_no_locks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with output_dir.claim("gs://b/run"), output_dir.claim("gs://b/run"):
        assert list(tmp_path.iterdir()) == []
