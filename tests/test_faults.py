"""Every file that every script reads, with every fault: one line, one rule.

The line names the file and the exit code is 2, or 1 for doctor.py, which checks
all files. Nothing is written, and no traceback is printed. Faults of a format
are in the tests of its reader.
"""

import importlib
import io
import os
import pathlib
import shutil
import sys

import pytest

from tests.bad_inputs import flag_cases, good_files, runs
from tests.bad_inputs.cases import CASES

ROOT = pathlib.Path(__file__).parents[1]
BINARY = bytes(range(256)) * 3


def replace(content):
    """A fault that writes other content, a function of the good one."""

    def write(path):
        path.write_bytes(content(path.read_bytes()))

    return write


def make_folder(path):
    path.unlink()
    path.mkdir()


def make_pipe(path):
    path.unlink()
    os.mkfifo(path)


FAULTS = {
    "missing": pathlib.Path.unlink,
    "folder": make_folder,
    "pipe": make_pipe,
    "empty": replace(lambda content: b""),
    "binary": replace(lambda content: BINARY),
    "cut": replace(lambda content: content[: len(content) // 2]),
}
TEXT = ("missing", "folder", "pipe", "empty", "binary")  # may be cut
READ = [  # file below the good ones, its faults, runs that read it
    ("corpus.txt", TEXT, ["create_vocab", "create_pretraining_data"]),
    ("corpus.jsonl", FAULTS, ["prepare_corpus"]),
    (
        "model/vocab.txt",
        TEXT,
        [
            "create_pretraining_data",
            "extract_features",
            "fill_mask",
            "run_classifier",
        ],
    ),
    ("masks.txt", TEXT, ["fill_mask"]),
    # A line that is not UTF-8 has its error in the output.
    ("masks.txt", TEXT[:-1], ["extract_features"]),
    ("table.tsv", TEXT, ["run_classifier"]),
    ("to_predict.tsv", TEXT, ["run_classifier"]),
    ("words.txt", TEXT, ["run_ner"]),
    ("squad.json", FAULTS, ["run_squad"]),
    ("choices.csv", FAULTS, ["run_swag"]),
    (
        "model/bert_config.json",
        FAULTS,
        ["extract_features", "run_pretraining", "run_ner", "convert_google"],
    ),
    (
        "model/bert_model.ckpt.index",
        FAULTS,
        [
            "convert_google",
            "extract_features",
            "fill_mask",
            "doctor_checkpoint",
        ],
    ),
    (
        "model/bert_model.ckpt.data-00000-of-00001",
        FAULTS,
        ["convert_google", "extract_features", "run_swag", "doctor_checkpoint"],
    ),
    ("hf/config.json", FAULTS, ["convert_huggingface"]),
    ("hf/model.safetensors", FAULTS, ["convert_huggingface"]),
    ("records/good.tfrecord", FAULTS, ["run_pretraining"]),
    ("bare/good.tfrecord", FAULTS, ["run_pretraining_bare"]),
]


@pytest.fixture
def rejected(tmp_path_factory, tmp_path, run_script, monkeypatch):
    """Runs a script, after a change of the files; returns its one line."""
    folder = tmp_path / "files"
    shutil.copytree(good_files.shared(tmp_path_factory), folder)

    def entries():
        return {path: path.lstat().st_mtime_ns for path in folder.rglob("*")}

    def run(name, change=lambda folder: None, **changed):
        change(folder)
        before = entries()
        script, flags, code = runs.command(name, folder, **changed)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n")))
        exit_code, out, err = run_script(script, **flags)
        assert exit_code == code, (out, err)
        assert "Traceback" not in err
        assert "\x1b" not in out + err
        assert entries() == before
        if code == 1:  # of doctor, which has a line for each file
            return out
        (line,) = [x for x in err.splitlines() if x.startswith("error: ")]
        assert err.endswith(f"{line}\n")
        assert len(line) < 2100
        return line

    return run


@pytest.mark.parametrize(
    ("path", "fault", "name"),
    [
        (path, fault, name)
        for path, faults, names in READ
        for fault in faults
        for name in names
    ],
)
def test_a_file_with_a_fault_is_named(rejected, path, fault, name):
    line = rejected(name, lambda folder: FAULTS[fault](folder / path))
    named = pathlib.Path(path).name.removesuffix(".index")
    assert named.partition(".data")[0] in line


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
def test_a_bad_file_is_one_line(rejected, case):
    changed = {}
    if case.path.startswith("other/"):
        changed["input"] = "{folder}/other"
    line = rejected(case.run, case.write, **changed)
    assert (case.message or pathlib.Path(case.path).name) in line


@pytest.mark.parametrize(("name", "flags", "message"), flag_cases.FLAGS)
def test_wrong_flags_are_one_line(rejected, name, flags, message):
    assert message in rejected(name, **flags)


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in ROOT.glob("*.py"))
)
def test_an_unknown_flag_of_any_script_is_one_line(run_script, name):
    script = importlib.import_module(name)
    code, out, err = run_script(script, max_seq_lenght=7)
    assert (code, out) == (2, "")
    assert err.startswith("error: Unknown command line flag 'max_seq_lenght'")
    assert all(x.startswith("error: ") for x in err.splitlines())
