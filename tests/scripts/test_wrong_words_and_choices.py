"""A stranger's mistakes with run_ner and run_swag: one line, exit code 2."""

import json

import pytest

import run_ner
import run_swag
from tests.helpers import model_files

NER = "the O\ncat B-X\n\ndog I-X\n"
SWAG = "sent1,sent2,ending0,ending1,label\nthe cat,it,sees,likes,1\n"


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    model_files.write_sizes(folder, "config.json", max_position_embeddings=37)
    (folder / "run").mkdir()
    (folder / "run" / "checkpoint").write_text("")
    task = {"labels": ["O", "B-Y", "I-Y"], "kind": "entities"}
    (folder / "run" / "task.json").write_text(json.dumps(task))
    (folder / "other").mkdir()
    (folder / "other" / "checkpoint").write_text("")
    (folder / "other" / "task.json").write_text(
        '{"kind": "classes", "labels": ["0", "1"]}'
    )
    (folder / "full").mkdir()
    (folder / "full" / "file").write_text("")
    return folder


@pytest.fixture
def refused(good, tmp_path, run_script):
    """Runs a script on a file; returns its one line, without `error: `."""

    def run(script, content=None, name=None, **changed):
        is_ner = script is run_ner
        path = tmp_path / (name or ("a.conll" if is_ner else "a.csv"))
        if content is None:
            content = NER if is_ner else SWAG
        path.write_bytes(
            content if isinstance(content, bytes) else content.encode()
        )
        flags = {
            "do_train": True,
            "train_file": path,
            "vocab_file": good / "vocab.txt",
            "bert_config_file": good / "config.json",
            "output_dir": tmp_path / "out",
            "max_seq_length": 31,
            **changed,
        }
        flags = {
            name: good / value[1:] if str(value).startswith("@") else value
            for name, value in flags.items()
            if value is not None
        }
        before = sorted(good.rglob("*")), sorted(tmp_path.iterdir())
        code, out, err = run_script(script, **flags)
        assert code == 2, (out, err)
        (line,) = err.splitlines()
        assert (sorted(good.rglob("*")), sorted(tmp_path.iterdir())) == before
        return line.removeprefix("error: ").replace(f"{tmp_path}/", "")

    return run


@pytest.mark.parametrize(
    ("script", "flags", "message"),
    [
        (run_ner, {"do_train": False}, "nothing to do; pass --do_train"),
        (run_swag, {"do_train": False}, "nothing to do; pass --do_train"),
        (run_ner, {"train_file": None}, "no --train_file; name the file"),
        (run_swag, {"do_eval": True}, "no --eval_file; name the file"),
        (run_ner, {"train_file": "/none"}, "'/none' matches no file"),
        (run_ner, {"train_file": "/"}, "/: --train_file is a folder"),
        (run_swag, {"train_file": "/n.csv"}, "/n.csv: no such file"),
        (run_ner, {"max_seq_length": 38}, "at most max_position_embeddings"),
        (run_swag, {"max_seq_length": 4}, "=4; expected at least 5"),
        (
            run_ner,
            {"doc_stride": 15},
            "=15; expected at most half a window, 14",
        ),
        (run_ner, {"label_kind": "bio"}, "label_kind"),
        (run_ner, {"label_column": 2}, "a.conll:1: 2 columns: 'the O'"),
        (run_ner, {"word_column": 1}, "expected a word and its label"),
        (
            run_ner,
            {"export_dir": "@full"},
            "full: already exists; expected a new or empty folder",
        ),
        (run_swag, {"export_dir": "@full"}, "full: already exists"),
        (
            run_ner,
            {"output_dir": "@run"},
            "run: holds a run with 3 labels: O, B-Y, I-Y; expected 3: O, B-X",
        ),
        (
            run_ner,
            {"output_dir": "@other"},
            "other: its task.json was not written by run_ner.py; expected l",
        ),
        (
            run_ner,
            {
                "do_train": False,
                "do_predict": True,
                "predict_file": "@vocab.txt",
            },
            "out: unknown labels; expected task.json of a trained",
        ),
        (run_ner, {"warmup_proportion": 2}, "expected a number from 0 to 1"),
    ],
)
def test_flags(refused, script, flags, message):
    assert message in refused(script, **flags)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "a.conll: no word; expected one word per line"),
        ("the O\ncat\n", "a.conll:2: 1 columns: 'cat'; expected 2"),
        ("the\ncat\n", "a.conll:1: 1 column: 'the'; expected a word and"),
        ("the O\ncat B_X\ndog B-X\n", "a.conll:2: label 'B_X' among entity"),
        (b"the O\n\xe9t O\n", "a.conll:2: invalid UTF-8 byte 0xe9 at column 1"),
        ("the O\rcat O\rdog O\r", "a.conll:1: line ends are lone carriage"),
        (b"\xff\xfet\x00", "a.conll:1: is UTF-16; expected UTF-8; convert"),
    ],
)
def test_files_of_words(refused, content, message):
    assert refused(run_ner, content).startswith(message)


def test_labels_that_are_no_entities(refused):
    line = refused(run_ner, "the DT\n", label_kind="entities")
    assert line.startswith("a.conll:1: labels such as 'DT'; expected O, or B-")


HEADER = SWAG.split("\n")[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "a.csv: is empty"),
        (f"{HEADER}\n", "a.csv: no examples; expected one per line"),
        ("a,b\n1,2\n", "a.csv:1: 0 columns ending0, ending1, ..; expected two"),
        (f"{HEADER}\na,b,c,d\n", "a.csv:2: 4 columns; expected 5, as the"),
        (f"{HEADER}\na,b,c,d,2\n", "a.csv:2: label 2; expected the number"),
        (f"{HEADER}\na,b,c,,1\n", "a.csv:2: choice 1 is empty; expected a"),
        (f'{HEADER}\n"a,b,c,d,1\n', "a.csv:2: this row cannot be parsed"),
        (f"{HEADER}\n".encode() + b"\xe9,b,c,d,1\n", "a.csv:2: invalid UTF-8"),
        (
            "sent1,ending0,ending1,label\na,b,c,1\n",
            "a.csv:1: no column 'sent2'; expected one of 4 columns: sent1",
        ),
    ],
)
def test_files_of_choices(refused, content, message):
    assert refused(run_swag, content).startswith(message)


def test_json_lines_of_choices(refused):
    content = '{"context": "a", "choices": ["b"], "label": 0}\n'
    line = refused(run_swag, content, "a.jsonl")
    assert line == "a.jsonl:1: 1 choice; expected two or more"
    line = refused(run_swag, SWAG, "a.txt")
    assert line.startswith("a.txt: is neither .csv nor .jsonl; expected SWAG's")
