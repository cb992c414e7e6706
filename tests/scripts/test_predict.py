"""predict.py predicts lines and tables with a model."""

import io
import json
import math
import os
import re
import select
import subprocess
import sys

import pyarrow
import pytest
from pyarrow import parquet

import predict
from bert.common import text_lines
from bert.common.errors import UserError
from bert.data.row_settings import RowSettings
from bert.inference import jsonl
from bert.inference.settings import Settings
from bert.modeling.formats import conversion
from tests.helpers import classifier_files
from tests.helpers.predictors import predictor_of

LINES = [
    "the cat sees a dog",
    "a tree",
    "",
    "zzz",
    "the old dog finds the small red house near the warm river",
    "the quick bird\tlikes fish",
    "stones",
]


@pytest.fixture(scope="module")
def single(tmp_path_factory):
    return classifier_files.shared_networks(tmp_path_factory)


def half(example):
    """Predicts the length of the text; some are not finite numbers."""
    length = float(len(example["text"]))
    return {"value": {3.0: math.nan, 5.0: -math.inf}.get(length, length)}


LENGTHS = predictor_of(half)
MIXED = [b'{"text": "1"}', b"[]", b'{"text": "22"}', b'{"text": "\\ud800"}']
MIXED += [b'{"text": "333"}', b'{"text": "\xe9"}']
MIXED += [b'{"id": 9, "error": "no", "line": "7", "text": "55555"}']
MIXED += [b'{"text": "\\ud83d\\ude00"}', b'{"text": "' + b"4" * 97 + b'"}']


def examples_of(lines: list[bytes]) -> list[jsonl.Example]:
    stream = io.BytesIO(b"\n".join(lines))
    read = jsonl.read_examples(stream, LENGTHS.task, True, LENGTHS.task.inputs)
    return [example for some in read for example in some]


def test_a_bad_line_is_answered_by_its_error(monkeypatch, capsys):
    monkeypatch.setattr(text_lines, "LONGEST_LINE", 89)
    printer = jsonl.PredictionPrinter(LENGTHS, batch_size=2, strict=False)
    examples = examples_of(MIXED)
    printer.print(examples[:2])
    printer.print(examples[2:])
    lines = capsys.readouterr().out.splitlines()
    found = [json.loads(x, parse_constant=pytest.fail) for x in lines]
    wrong = {
        2: "Expected `object`, got `array`; expected a JSON object",
        4: "JSON has half of a surrogate pair",
        5: 'the prediction is {"value": NaN}; expected finite numbers',
        6: "invalid UTF-8 byte 0xe9 at column 11; convert the file to UTF-8",
        7: 'the prediction is {"value": -Infinity}; expected finite numbers',
        9: "a line of more than 89 bytes; expected text in lines; break it",
    }
    for line, answer in enumerate(found, start=1):
        if line in wrong:
            assert answer.pop("id", 9) == 9
            assert answer.keys() == {"error", "line"}
            assert answer["line"] == line
            assert answer["error"].startswith(wrong[line])
        else:
            assert answer == {"value": {1: 1.0, 3: 2.0, 8: 1.0}[line]}
    assert len(found) == 9 and printer.counts.errors == 6


def test_a_prediction_is_written_before_the_next_batch(monkeypatch):
    pipe = io.BytesIO()
    monkeypatch.setattr(
        sys, "stdout", io.TextIOWrapper(io.BufferedWriter(pipe))
    )
    written = predictor_of(lambda _: {"written": pipe.getvalue().count(b"\n")})
    printer = jsonl.PredictionPrinter(written, batch_size=2, strict=False)
    printer.print(examples_of(MIXED[:1] * 5))
    found = [json.loads(x)["written"] for x in pipe.getvalue().splitlines()]
    assert found == [0, 0, 2, 2, 4]


def test_repeated_ids_are_counted():
    printer = jsonl.PredictionPrinter(LENGTHS, batch_size=2, strict=False)
    ids = [b"7", b'"7"', b"7", b"[7]", b"[7]", b"8"]
    printer.print(examples_of([b'{"text": "a", "id": %b}' % x for x in ids]))
    printer.print(examples_of(MIXED[:2]))
    note = "note: lines with the id of an earlier line: 2 of 8"
    assert note in printer.counts.notes()


@pytest.mark.parametrize("bad", [1, 3, 4])
def test_strict_ends_at_the_first_bad_line(capsys, bad):
    printer = jsonl.PredictionPrinter(LENGTHS, batch_size=2, strict=True)
    lines = [MIXED[0], MIXED[2], MIXED[bad], MIXED[1]]
    with pytest.raises(UserError, match="^stdin:3: "):
        printer.print(examples_of(lines))
    assert capsys.readouterr().out == '{"value": 1.0}\n{"value": 2.0}\n'


def test_bad_lines_are_counted_and_are_no_failure(single, ask):
    content = "\n".join(LINES[:3]).encode() + b"\n\xe9\n" + LINES[3].encode()
    code, answers, err = ask(single, content)
    assert code == 0
    assert ["label" in x for x in answers] == [True] * 3 + [False, True]
    assert answers[3] == {
        "error": "invalid UTF-8 byte 0xe9 at column 1; convert the file to "
        "UTF-8, for example with `iconv -f cp1252 -t utf-8`",
        "line": 4,
    }
    assert err.splitlines()[2:] == [
        "warning: lines with an error instead of a prediction: 1 of 5",
        "note: empty lines, which are predicted like other lines: 1 of 5",
    ]


def test_a_file_is_read_instead_of_standard_input(single, ask, tmp_path):
    path = tmp_path / "lines.txt"
    path.write_bytes(b"a tree\n\xe9\n")
    code, answers, err = ask(single, b"no", "--strict", input_file=path)
    assert (code, len(answers)) == (2, 1)
    assert f"error: {path}:2: invalid UTF-8 byte 0xe9" in err


def test_a_prediction_is_one_line_of_utf8_in_any_locale(
    single, monkeypatch, tmp_path
):
    """Some readers end a line at U+2028; terminals obey U+009B."""
    pipe, kept = io.BytesIO(), "\u00e9 \u2028 \u0085 \u009b \u202e"
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(pipe, "ascii"))
    path = tmp_path / "lines.jsonl"
    path.write_text(json.dumps({"id": kept, "text": "a tree"}))
    predict.main(["predict", f"--model={single}", f"--input_file={path}"])
    (line,) = pipe.getvalue().decode().splitlines()
    assert json.loads(line)["id"] == kept
    assert not re.search("[\x80-\x9f\u202a-\u202e]", line)


TABLE = "id,subject,label,text\n"
TABLE += 'm1,a tree,ham,"the cat\nsees, a dog"\nm2,zzz,spam\nm3,bird,ham,zzz\n'
COLUMNS = {"text_column": "subject", "id_column": "id"}
CAT, TREE, BIRD, ZZZ = (
    {"text": x} for x in ("the cat\nsees, a dog", "a tree", "bird", "zzz")
)


@pytest.mark.parametrize(
    ("name", "flags", "found"),
    [
        ("t.csv", {}, [(2, CAT, {}), 4, (5, ZZZ, {})]),
        (
            "t.csv",
            COLUMNS,
            [(2, TREE, {"id": "m1"}), 4, (5, BIRD, {"id": "m3"})],
        ),
        (
            "t.csv",
            {"text_column": "3", "id_column": "label"},
            [(2, CAT, {"id": "ham"}), 4, (5, ZZZ, {"id": "ham"})],
        ),
        (
            "t.csv",
            {"text_column": "-1", "text_b_column": "0"},
            [
                (1, {"text": "text", "text_b": "id"}, {}),
                (2, CAT | {"text_b": "m1"}, {}),
                4,
                (5, ZZZ | {"text_b": "m3"}, {}),
            ],
        ),
        ("t.jsonl", COLUMNS, [(1, TREE, {"id": "m1"}), (2, BIRD, {"id": 3})]),
        ("t.parquet", COLUMNS, [(1, TREE, {"id": 1}), 2, (3, BIRD, {"id": 3})]),
    ],
)
def test_a_row_of_a_table_is_one_example_with_its_id(
    tmp_path, name, flags, found
):
    """A number is the line of an error; a second text is optional."""
    path = tmp_path / name
    path.write_text(TABLE)
    if name == "t.jsonl":
        rows = [{"subject": "a tree", "id": "m1"}, {"subject": "bird", "id": 3}]
        path.write_text("\n".join(map(json.dumps, rows)))
    if name == "t.parquet":
        columns = {"id": [1, 2, 3], "subject": ["a tree", None, "bird"]}
        parquet.write_table(pyarrow.table(columns), path)
    model = predictor_of()
    model.task.optional_inputs = ("text_b",)
    read = jsonl.read(RowSettings(**flags), model.task, str(path), ["text"])
    assert found == [
        x if isinstance(x.fields, dict) else x.line
        for some in read
        for x in some
    ]


def test_other_keys_of_json_are_repeated_or_replaced(capsys):
    model = predictor_of(lambda _: {"label": "y", "value": 1.0})
    printer = jsonl.PredictionPrinter(model, batch_size=2, strict=False)
    lines = [b'{"n": [7], "label": "x", "text": "a"}', b'{"n": 8}']
    lines.append(lines[0])
    printer.print(examples_of(lines))
    answer, error, _ = map(json.loads, capsys.readouterr().out.splitlines())
    assert [*answer.items()] == [("n", [7]), ("label", "y"), ("value", 1.0)]
    assert "required field `text`" in error["error"] and error["line"] == 2
    *_, note = printer.counts.notes()
    assert "were replaced by values of the prediction " in note
    assert note.endswith("with the same name: label")


@pytest.mark.parametrize(
    ("given", "inputs"),
    [
        ("text_b,text", ("text", "text_b")),
        ("context,choices", ("context", "choices")),
        ("choices,context", None),
        ("context,context,choices", None),
    ],
)
def test_the_inputs_have_any_order_with_the_choices_last(given, inputs):
    settings = Settings(model="m", inputs=tuple(given.split(",")))
    if inputs:
        assert settings.ordered(inputs) == settings.inputs
    else:
        with pytest.raises(UserError, match=f"m: --inputs={given}; expected"):
            settings.ordered(("context", "choices"))


def test_numbers_have_six_decimals():
    values = {"x": [1 / 3], "y": {"z": 2e-7}}
    assert jsonl.to_json(values, 1) == '{"x": [0.333333], "y": {"z": 0.0}}'


CHOOSER = predictor_of(dict, "context", "choices")


def fields_of(line, is_json):
    return jsonl.fields_of(line, 1, CHOOSER.task, is_json, CHOOSER.task.inputs)


@pytest.mark.parametrize(
    ("line", "is_json", "fields"),
    [
        (b"a\tb\tc\t\r", False, ("a", ["b", "c", ""])),
        (b'{"choices": ["b"], "context": "a\\tb"}', True, ("a\tb", ["b"])),
    ],
)
def test_choices_are_all_fields_that_are_left(line, is_json, fields):
    expected = dict(zip(("context", "choices"), fields))
    assert fields_of(line, is_json) == (expected, {})


EITHER = predictor_of(dict, "text")
EITHER.task.optional_inputs = ("text_b",)


@pytest.mark.parametrize(
    ("line", "given", "fields"),
    [
        (b"a", None, {"text": "a"}),
        (b"a\tb", None, {"text": "a", "text_b": "b"}),
        (b"a\tb", "text,text_b", {"text": "a", "text_b": "b"}),
        (b"a\tb", "text_b,text", {"text": "b", "text_b": "a"}),
        (b"a\tb", "text", {"text": "a\tb"}),
        (b"a\tb\tc", None, "3 fields; expected 1 or 2 separated by tabs: te"),
        (b"a", "text_b,text", "1 field; expected 2 separated by tabs: text_b"),
        (b"a", "text_b", "--inputs=text_b; expected text, text_b"),
        (b"a", "text,text", "--inputs=text,text; expected text, text_b"),
    ],
)
def test_a_second_text_may_be_missing(line, given, fields):
    """Of folders of transformers, which do not record what a model reads."""

    def read():
        settings = Settings(inputs=given and tuple(given.split(",")))
        task = EITHER.task
        inputs = settings.ordered(task.inputs, task.optional_inputs)
        return jsonl.fields_of(line, 1, task, False, inputs)

    if isinstance(fields, dict):
        assert read() == (fields, {})
        return
    with pytest.raises(UserError, match=re.escape(fields)):
        read()


def test_a_pair_model_of_transformers_reads_both_texts(ask, tmp_path):
    """Of a line, of JSON, and of the columns with their names."""
    model = classifier_files.classifier_of(tmp_path, pairs=True)
    folder = tmp_path / "model"
    folder.mkdir()
    conversion.write(model, "huggingface", str(folder))
    (folder / "task.json").unlink()  # which transformers does not write
    (tmp_path / "t.csv").write_text("text,text_b\nthe cat,a dog\nthe cat,\n")
    table = pyarrow.table({"text": ["the cat"] * 2, "text_b": ["a dog", None]})
    parquet.write_table(table, tmp_path / "t.parquet")
    pair = b'{"text": "the cat", "text_b": "a dog"}\n{"text": "the cat"}'
    _, expected, _ = ask(folder, pair, "--json")
    assert expected[0]["probabilities"] != expected[1]["probabilities"], (
        expected
    )
    for content, named in (
        (b"the cat\ta dog\nthe cat\n", {}),
        (b"a dog\tthe cat\n\tthe cat\n", {"inputs": "text_b,text"}),
        (b"", {"input_file": tmp_path / "t.csv"}),
        (b"", {"input_file": tmp_path / "t.parquet"}),
    ):
        code, found, err = ask(folder, content, **named)
        assert code == 0, err
        assert found == expected


@pytest.mark.parametrize(
    ("line", "is_json", "message"),
    [
        (b"a", False, "1 field; expected 2 separated by tabs: context, choi"),
        (b'{"context": "a", "choices": "bc"}', True, ""),
        (b'{"context": "a", "choices": []}', True, ""),
        (b'{"context": "a", "choices": ["b", 1]}', True, ""),
        (b'{"context": ["a"], "choices": ["b"]}', True, ""),
    ],
)
def test_a_line_without_choices_is_rejected(line, is_json, message):
    with pytest.raises(UserError, match=f"stdin:1: {message}"):
        fields_of(line, is_json)


@pytest.mark.slow
def test_a_program_can_ask_line_by_line_without_a_line_of_tensorflow(single):
    """Of all commands it loads most: TensorFlow, Keras, TensorFlow Text."""
    script = os.path.join(os.path.dirname(predict.__file__), "predict.py")
    with subprocess.Popen(
        [sys.executable, script, f"--model={single}", "--engine=keras"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={k: x for k, x in os.environ.items() if k != "PYTHONUNBUFFERED"},
    ) as process:
        for line in LINES[:2]:
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
            answered, *_ = select.select([process.stdout], [], [], 200)
            if not answered:
                process.kill()
            assert answered
            assert "label" in json.loads(process.stdout.readline())
        process.stdin.close()
        assert process.stdout.read() == ""
        first, second, third = process.stderr.read().splitlines()
    assert first == f"loading {single} ..."
    assert second == "loading TensorFlow ..."
    assert third.startswith("device: CPU, ")
    assert process.returncode == 0
