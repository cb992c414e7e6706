"""Files that are removed, replaced or forbidden during a run: one line."""

import itertools
import shutil

import pytest
import safetensors.numpy

from bert.common import storage
from bert.common.errors import UserError
from bert.common.formats import parquet_files
from bert.common.jobs import runners
from bert.data.records import shuffle
from bert.inference import row_job
from bert.training import logs, saver
from tests.bad_inputs import good_files, runs

OUTPUTS = {
    "create_pretraining_data": ("output_file", "a.tfrecord"),
    "extract_features": ("output_file", "a.jsonl"),
    "run_pretraining": ("output_dir", ""),
}


@pytest.fixture
def good(tmp_path_factory):
    return good_files.shared(tmp_path_factory)


@pytest.fixture
def rejects(monkeypatch, run_script, good, tmp_path):
    """Runs a script; a call of a function of it removes the folder first."""

    def check(name, module, function, call=1, **more):
        folder = tmp_path / "made"
        folder.mkdir()
        original = getattr(module, function)
        calls = itertools.count(1)

        def remove(*arguments, **named):
            if next(calls) == call:
                shutil.rmtree(folder)
            return original(*arguments, **named)

        monkeypatch.setattr(module, function, remove)
        script, flags, _ = runs.command(name, good)
        flag, file = OUTPUTS[name]
        flags |= {flag: folder / file, **more}
        code, _, err = run_script(script, **flags)
        last = err.splitlines()[-1]
        assert code == 2, err
        assert last.startswith(f"error: {folder}/")
        assert not folder.exists()
        return last

    return check


@pytest.mark.parametrize(
    ("module", "function", "call", "processes"),
    [
        (shuffle, "write_portions", 1, 1),  # of texts
        (runners, "map_shown", 3, 1),  # of parts
        (runners, "map_shown", 3, 2),
        (runners, "map_shown", 4, 1),  # of shards
    ],
)
def test_records(rejects, module, function, call, processes):
    line = rejects(
        "create_pretraining_data",
        module,
        function,
        call=call,
        num_processes=processes,
    )
    assert "No such file or directory" in line


@pytest.mark.long
@pytest.mark.parametrize(
    ("module", "function", "message"),
    [
        (
            logs,
            "log_training",
            "metrics.jsonl: cannot be read or written: No such file or "
            "directory; check that its folder is still there",
        ),
        (saver.Saver, "_save", "has been removed; run the same command"),
    ],
)
def test_runs(rejects, module, function, message):
    assert message in rejects("run_pretraining", module, function)


def test_embeddings(rejects):
    line = rejects("extract_features", row_job, "_plan")
    assert "cannot be written: No such file or directory" in line


def forbid(*_, **__):
    raise PermissionError(13, "Permission denied")


def test_files_that_may_not_be_read_are_not_damaged(
    monkeypatch, run_script, good, tmp_path
):
    monkeypatch.setattr(safetensors.numpy, "load_file", forbid)
    script, flags, _ = runs.command("convert_huggingface", good)
    code, _, err = run_script(script, **flags | {"output": tmp_path / "out"})
    assert code == 2
    assert err.splitlines()[-1].endswith("Permission denied")
    path = tmp_path / "a.parquet"
    path.touch()
    monkeypatch.setattr(storage, "open_file", forbid)
    with pytest.raises(UserError, match="Permission denied$"):
        list(parquet_files.rows(str(path), ["text"]))
