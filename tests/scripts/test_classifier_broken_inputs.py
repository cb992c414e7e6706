"""Broken inputs of run_classifier: one line, exit code 2, nothing written."""

import pytest

import run_classifier
from tests.helpers import classifier_files
from tests.helpers.classifier_files import HEADER

GOOD = "1\t10\t20\tthe cat\ta bird\n"
OTHER = "0\t11\t21\tthe dog\ta bird\n"
OWN = {"task_name": "tsv", "text_column": "t", "label_column": "l"}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("broken")
    classifier_files.write_model(folder)
    classifier_files.write_task(folder)
    return folder


def case(name, content, found, **named):
    """A file, the expected message, flags."""
    return pytest.param(name, content, found, named, id=found[:40])


CASES = [
    case(
        "dev.tsv",
        f"{HEADER}\n{GOOD}1\t10\t20\tshort\n",
        "dev.tsv:3: 4 columns; expected 5, as the header has",
    ),
    case(
        "train.tsv",
        f"{HEADER}\n{GOOD}{OTHER.strip()}\ttoo\tlong\n",
        "train.tsv:3: 7 columns; expected 5",
    ),
    case(
        "train.tsv",
        f"{HEADER}\n{GOOD}2\t1\t2\ta\tb\n",
        "train.tsv:3: unknown label '2'; expected one of 0, 1",
    ),
    case(
        "dev.tsv",
        GOOD + OTHER,
        "dev.tsv:1: '1' in column 0; expected a header",
    ),
    case(
        "test.tsv",
        "0\t1\t2\ta\tb\n1\t1\t2\ta\tb\n",
        "test.tsv:1: no column '#1 String'; expected one of 5",
    ),
    case(
        "train.tsv",
        f"{HEADER}\n{GOOD}",
        "train.tsv:1: unknown label '#1 ID'; expected one of 0, 1; it looks "
        "like a header",
        task_name="cola",
    ),
    case("train.tsv", "", "train.tsv: is empty"),
    case("dev.tsv", "\n\n", "dev.tsv: is empty"),
    case("test.tsv", f"index{HEADER[7:]}\n", "test.tsv: no example"),
    case(
        "own.csv",
        "t,l\n",
        "own.csv: no example; expected one per line after the header",
        **OWN,
        train_file="own.csv",
    ),
    case("test.tsv", None, "test.tsv: no such file"),
    case(
        "train.tsv",
        f"{HEADER}\n{GOOD}1\t1\t2\td\u00e9j\u00e0\tvu\n".encode("latin-1"),
        "train.tsv:3: invalid UTF-8 byte 0xe9 at column 8; convert",
    ),
    case(
        "train.tsv",
        f"{HEADER}\n{GOOD}".encode("utf-16"),
        "train.tsv:1: is UTF-16; expected UTF-8",
    ),
    case(
        "train.tsv",
        f"{HEADER}\n{GOOD}".replace("\n", "\r") * 2,
        "train.tsv:1: line ends are lone carriage returns",
    ),
    case(
        "train.tsv",
        f"{HEADER}\n{GOOD}1\t1\t2\t{'x ' * 8_400_000}\tb\n",
        "train.tsv:3: a field of 16,800,000 characters; expected at most",
    ),
    case(
        "train.tsv",
        "t\tl\none\ta\ntwo\tb\n",
        "train.tsv:1: no column 'text'; expected one of 2 columns: t, l",
        **{**OWN, "text_column": "text"},
    ),
    case(
        "train.tsv",
        "t\tl\none\ta\ntwo\tb\n",
        "train.tsv:1: no column 7; expected one of 2 columns",
        **{**OWN, "label_column": "7", "header": "true"},
    ),
    case(
        "train.tsv",
        "t\tl\none\ta\ntwo\ta\n",
        "train.tsv: 1 label: 'a'; expected at least two different",
        **OWN,
    ),
    case(
        "train.tsv",
        "t\tl\none\t3.5\ntwo\thigh\n",
        "train.tsv:3: label 'high'; expected a number",
        **OWN,
        regression=True,
    ),
    case(
        "own.csv",
        't,l\n"one,a\ntwo,b\n',
        "own.csv:2: this row cannot be parsed: unexpected end of data; is a "
        "quote missing?",
        **OWN,
        train_file="own.csv",
    ),
    case(
        "own.jsonl",
        '{"t": "one", "l": "a"}\n{"t": "two"}\n',
        "own.jsonl:2: no key 'l'; expected one of t",
        **OWN,
        train_file="own.jsonl",
    ),
    case(
        "own.jsonl",
        '{"t": null, "l": "a"}\n{"t": "two", "l": "b"}\n',
        "own.jsonl:1: the text is null; expected a string",
        **OWN,
        train_file="own.jsonl",
    ),
    case(
        "own.jsonl",
        '{"t": "one", "l": "a"}\n{"t": "two", "l"\n',
        "own.jsonl:2: JSON is malformed",
        **OWN,
        train_file="own.jsonl",
    ),
]


@pytest.mark.parametrize(("name", "content", "found", "named"), CASES)
def test_a_broken_file_is_one_line_and_nothing_is_written(
    made, tmp_path, run_script, name, content, found, named
):
    for file in made.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    path = tmp_path / name
    if content is None:
        path.unlink()
    elif isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_bytes(content.encode())
    run = tmp_path / "run"
    run.mkdir()
    (run / "eval_results.txt").write_text("of an earlier run\n")
    (run / "train.tf_record").write_text("of an earlier run\n")
    named = {
        **classifier_files.flags_of(tmp_path),
        "output_dir": run,
        "export_dir": tmp_path / "export",
        **named,
    }
    if "train_file" in named:
        named["train_file"] = tmp_path / named["train_file"]
    words = ["--do_train"]
    if named["task_name"] == "mrpc":
        words += ["--do_eval", "--do_predict"]
    code, out, err = run_script(run_classifier, *words, **named)
    assert code == 2
    assert err.startswith(f"error: {tmp_path}/{found}"), err
    assert err.count("\n") == 1
    assert out == ""
    assert {p.name: p.read_text() for p in run.iterdir()} == {
        "eval_results.txt": "of an earlier run\n",
        "train.tf_record": "of an earlier run\n",
    }
    assert not (tmp_path / "export").exists()


def test_there_are_twenty():
    assert len(CASES) >= 20


@pytest.mark.parametrize(
    ("words", "named", "found"),
    [
        ([], {}, "nothing to do; pass --do_train"),
        (["--do_eval"], {"vocab_file": None}, "no --vocab_file"),
        (["--do_eval"], {"bert_config_file": None}, "no --bert_config_file"),
        (["--do_eval"], {"num_seeds": 3}, "--num_seeds=3; expected --do_train"),
        (["--do_eval"], {"glue_dir": "x"}, "--glue_dir without --do_predict"),
        (["--do_eval"], {"max_seq_length": 14}, "--max_seq_length=14; expect"),
        (["--do_eval"], {"init_checkpoint": None}, "no checkpoint"),
        (
            ["--do_eval"],
            {"bert_hub_module_handle": "x"},
            "--init_checkpoint and --bert_hub_module_handle; expected one",
        ),
        (
            ["--do_eval"],
            {"bert_hub_module_handle": "x", "init_checkpoint": None},
            "x: no SavedModel; expected a folder on this machine",
        ),
    ],
)
def test_wrong_flags_are_one_line(
    made, tmp_path, run_script, words, named, found
):
    named = {
        **classifier_files.flags_of(made),
        "output_dir": tmp_path / "run",
        **named,
    }
    named = {k: v for k, v in named.items() if v is not None}
    code, _, err = run_script(run_classifier, *words, **named)
    assert code == 2
    lines = [x for x in err.splitlines() if not x.startswith("device: ")]
    assert found in lines[0] and len(lines) == 1
    assert not (tmp_path / "run").exists()


def test_a_folder_with_files_is_no_export_dir(made, run_script):
    named = classifier_files.flags_of(made) | {"output_dir": made / "run"}
    code, _, err = run_script(
        run_classifier, "--do_eval", **named, export_dir=made
    )
    assert code == 2 and "already exists; expected a new or empty folder" in err
