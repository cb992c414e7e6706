"""Predictions and embeddings of large files: runners, formats, killed runs."""

import bz2
import csv
import gzip
import importlib.metadata
import json
import os
import pathlib
import random
import re
import signal

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

import extract_features
import predict
from bert.common import storage
from bert.common.errors import UserError
from bert.common.jobs import runners
from bert.data.text import tokenizer
from bert.inference.row_job import RowJob
from tests.helpers import classifier_files, fork_server, text
from tests.helpers.classifier_files import classifier_of, write_networks
from tests.helpers.fork_server import ForkServer

ROWS = 97
MB = 0.001  # of a partition; the input has a few of them
POOLED = ("--pooling=mean", "--id_column=id")  # one vector a text


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return classifier_files.shared_networks(tmp_path_factory)


@pytest.fixture(scope="module")
def texts():
    rng = random.Random(7)
    found = [
        " ".join(rng.choices(text.WORDS, k=rng.randrange(1, 19)))
        for _ in range(ROWS)
    ]
    found[5], found[-1] = " ", ""
    return found


def write(folder, name, texts):
    """Writes texts with ids as a file of any format; returns its path."""
    path = folder / name
    if name.endswith(".parquet"):
        ids = [*range(len(texts))]
        table = pyarrow.table({"id": ids, "text": texts})
        parquet.write_table(table, path, row_group_size=41)
    elif name.endswith(".csv"):  # with newlines in quoted cells
        with open(path, "w", newline="") as file:
            rows = [(i, x.replace("the", "\n")) for i, x in enumerate(texts)]
            csv.writer(file).writerows([("id", "text"), *rows])
    else:
        content = "".join(f"{x}\n" for x in texts)
        if name.endswith(".jsonl"):
            rows = [{"id": i, "text": x} for i, x in enumerate(texts)]
            content = "\n".join(map(json.dumps, rows))
        content = content.encode()
        if name.endswith(".gz"):
            content = gzip.compress(content)
        path.write_bytes(content)
    return path


@pytest.fixture
def large(model, run_script, tmp_path):
    """Runs the script; returns (content of the output, error)."""

    def run(*words, code=0, output="out.jsonl", **named):
        named = {
            "model": model,
            "output_file": tmp_path / output,
            "partition_mb": MB,
            **named,
        }
        named = {k: x for k, x in named.items() if x is not None}
        found, out, err = run_script(predict, *words, **named)
        assert found == code, err
        path = tmp_path / output
        return (path.read_bytes() if path.exists() else out), err

    return run


NAMES = ["t.txt", "t.txt.gz", "t.jsonl", "t.csv", "t.parquet"]


@pytest.mark.parametrize("name", NAMES)
def test_the_output_has_the_prediction_of_each_row(
    large, ask, model, texts, tmp_path, name
):
    """The ids are in the order of the input, with whole rows in partitions."""
    path = write(tmp_path, name, texts)
    has_ids = name in ("t.csv", "t.parquet")
    words = ["--id_column=id"] if has_ids else []
    found, err = large(*words, input_file=path, num_processes=1)
    _, expected, _ = ask(model, b"no", *words, input_file=path)
    lines = [json.loads(line) for line in found.splitlines()]
    ids = {"t.txt": None, "t.txt.gz": None, "t.csv": str}.get(name, int)
    assert [x.get("id") for x in lines] == [ids and ids(i) for i in range(ROWS)]
    for line, other in zip(lines, expected, strict=True):
        assert line["probabilities"] == pytest.approx(
            other["probabilities"], abs=1e-5
        )
    assert sorted(os.listdir(tmp_path)) == sorted([name, "out.jsonl"])
    if name != "t.csv":  # its texts lack a word
        assert f"predicted like other lines: 2 of {ROWS}" in err
        tokenize = tokenizer.Tokenizer(f"{model}/vocab.txt").exact.tokenize
        long = sum(len(tokenize(x)) > 11 for x in texts)
        assert f"truncated to the model's 13 tokens: {long} of {ROWS}" in err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["t.txt.gz", "t.csv", "t.parquet"])
def test_the_bytes_are_the_same_in_all_ways(large, texts, tmp_path, name):
    path = write(tmp_path, name, texts)
    expected, _ = large(input_file=path, num_processes=1)
    assert large(input_file=path, num_processes=2)[0] == expected
    beam, _ = large(
        "--runner=DirectRunner",
        input_file=path,
        output="beam.jsonl",
        num_shards=3,
    )
    shards = sorted(tmp_path.glob("beam-*-of-00003.jsonl"))
    assert len(shards) == 3 and "wrote 97 predictions to " in beam
    assert b"".join(x.read_bytes() for x in shards) == expected


def test_files_are_read_in_order_and_name_their_errors(large, texts, tmp_path):
    """A bad row of a file is answered in its place."""
    (tmp_path / "a.txt").write_bytes(b"a tree\n\xe9\nzzz\n")
    write(tmp_path, "b.jsonl", texts[:2])
    (tmp_path / "c.txt").write_bytes(b"")
    found, err = large(input_file=f"{tmp_path}/[a-c].*")
    lines = [json.loads(line) for line in found.splitlines()]
    assert [list(x)[0] for x in lines] == [
        *("label", "error", "label"),
        *("id", "id"),
    ]
    assert lines[1]["file"] == f"{tmp_path}/a.txt" and lines[1]["line"] == 2
    assert "an error instead of a prediction: 1 of 5" in err
    _, err = large("--strict", code=2, input_file=f"{tmp_path}/[a-c].*")
    assert f"error: {tmp_path}/a.txt:2: invalid UTF-8 byte 0xe9" in err


def test_one_row_is_singular(large, embed, ask, model, tmp_path):
    """And a compressed table is read, in all ways."""
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b'id,text\n7,"the cat\nsees"\n'))
    found, _ = large("--id_column=id", input_file=path)
    _, expected, _ = ask(model, b"", "--id_column=id", input_file=path)
    assert [json.loads(found)] == expected and expected[0]["id"] == "7"
    (tmp_path / "out.jsonl").unlink()
    out, _ = large(input_file=path, num_shards=1)
    assert out.startswith("wrote 1 prediction to ")
    embed(path, "out.npy", *POOLED, rows="1 line")


def test_each_compressed_file_is_read(large, tmp_path):
    for name in ("a.txt.gz", "b.txt.gz"):
        write(tmp_path, name, ["tree" if name[0] == "a" else "the cat sees"])
    found, _ = large(input_file=f"{tmp_path}/*.gz", num_processes=1)
    one, other = found.splitlines()
    assert one != other


def test_predictions_are_columns_of_a_parquet_file(large, texts, tmp_path):
    """Also if only some rows have an error."""
    rows = [json.dumps({"id": i, "text": x}) for i, x in enumerate(texts)]
    rows[50] = "[]"
    (tmp_path / "t.jsonl").write_text("\n".join(rows))
    expected, _ = large(input_file=tmp_path / "t.jsonl")
    left = tmp_path / "out.parquet.partial"
    left.write_text("left by a killed run")
    large(input_file=tmp_path / "t.jsonl", output="out.parquet")
    assert not left.exists()
    table = parquet.read_table(tmp_path / "out.parquet")
    found = [
        {k: x for k, x in row.items() if x is not None}
        for row in table.to_pylist()
    ]
    assert found == [json.loads(line) for line in expected.splitlines()]
    assert table.schema.field("id").type == pyarrow.int64()


def test_a_shard_is_not_an_input(large, texts, tmp_path):
    path = write(tmp_path, "out-00001-of-00002.jsonl", texts)
    before = path.read_bytes()
    _, err = large(code=2, input_file=path, num_shards=2)
    assert f"{path}: is both input and output" in err
    assert path.read_bytes() == before


def test_there_are_at_most_as_many_shards_as_partitions(large, texts, tmp_path):
    path = write(tmp_path, "t.txt", texts)
    _, err = large(code=2, input_file=path, num_shards=99)
    (most,) = re.findall(r"--num_shards=99; expected at most (\d+), ", err)
    large(input_file=path, num_shards=most)
    shards = sorted(tmp_path.glob("out-*.jsonl"))
    assert len(shards) == int(most) > 3
    assert all(x.stat().st_size for x in shards)
    rows = b"".join(x.read_bytes() for x in shards)
    _, err = large(code=2, input_file=path, num_shards=3)
    assert err.splitlines()[-1] == (
        f"error: {shards[0]}: is a shard of an earlier command; expected one "
        "set of shards with this name; remove the earlier shards, or choose "
        "another --output_file"
    )
    for shard in shards:
        shard.unlink()
    (tmp_path / "out-00000-of-00004.csv").touch()  # not a shard of this name
    (tmp_path / "out-a-of-b.jsonl").touch()
    large(input_file=path, num_shards=3)
    shards = sorted(tmp_path.glob("out-*-of-00003.jsonl"))
    assert b"".join(x.read_bytes() for x in shards) == rows
    large(input_file=path, num_shards=3)  # replaces them


def test_an_input_that_changes_is_an_error(large, tmp_path, monkeypatch):
    path, missing = write(tmp_path, "t.txt", ["a"]), runners.missing

    def change(*job):
        path.write_text("a\nb\n")
        return missing(*job)

    monkeypatch.setattr(runners, "missing", change)
    _, err = large(code=2, input_file=path, num_processes=1)
    assert f"{path}: has changed while it was read" in err


@pytest.fixture
def stopped(large, texts, tmp_path, monkeypatch):
    """The input of a run that stopped after three parts, and its folder."""
    path, make, calls = write(tmp_path, "t.jsonl", texts), RowJob.make_part, []

    def make_three(job, partition):
        if len(calls) == 3:
            raise UserError("stopped")
        calls.append(partition)
        make(job, partition)

    with monkeypatch.context() as patch:
        patch.setattr(RowJob, "make_part", make_three)
        large(code=2, input_file=path, num_processes=1)
    (folder,) = tmp_path.glob(".partial-*")
    return path, folder


def truncate(path):
    os.truncate(path, path.stat().st_size - 40)


def empty(path):
    path.write_bytes(b"")


def flip(path):
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [truncate, empty, flip, os.remove])
@pytest.mark.parametrize("name", ["part-00001", "part-00001.json"])
def test_a_damaged_part_is_computed_again(
    large, stopped, tmp_path, name, damage
):
    path, folder = stopped
    damage(folder / name)
    found, err = large(input_file=path, num_processes=1)
    assert "continuing: 2 of " in err
    is_removed = damage is os.remove and name.endswith(".json")
    assert ("1 is damaged, and is computed again" in err) != is_removed
    expected, _ = large(input_file=path, output="straight.jsonl")
    assert found == expected


@pytest.mark.parametrize("damage", [truncate, empty, flip])
@pytest.mark.parametrize("name", ["plan.json", "run.json"])
def test_a_damaged_folder_of_parts_is_an_error(large, stopped, name, damage):
    path, folder = stopped
    damage(folder / name)
    _, err = large(code=2, input_file=path)
    assert err.splitlines()[-1] == (
        f"error: {folder}/{name}: is damaged; remove its folder, and repeat "
        "the command"
    )


def test_parts_of_other_versions_are_not_joined(large, stopped, monkeypatch):
    """Of OpenVINO, and of the project."""
    path, folder = stopped
    version = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata,
        "version",
        lambda name: "1.2" if name == "openvino" else version(name),
    )
    _, err = large(code=2, input_file=path)
    assert err.splitlines()[-1] == (
        f"error: {folder}: has the finished partitions of a run with another "
        f'version of openvino; expected "{version("openvino")}"; repeat that '
        "command, or remove the folder"
    )
    monkeypatch.undo()
    files_below = storage.files_below
    monkeypatch.setattr(storage, "files_below", lambda x: files_below(x)[1:])
    _, err = large(code=2, input_file=path)
    assert "a run with another version of this project; " in err


@pytest.fixture
def embed(model, run_script, tmp_path):
    """Runs extract_features.py; returns the content of its output."""

    def run(path, output, *words, rows=f"{ROWS} lines", **named):
        named = {
            "init_checkpoint": model,
            "input_file": path,
            "output_file": tmp_path / output,
            "partition_mb": MB,
            "layers": -1,
            "max_seq_length": 13,
            **named,
        }
        code, out, err = run_script(extract_features, *words, **named)
        assert code == 0, err
        assert f" of {rows} to " in out
        return tmp_path / output

    return run


@pytest.fixture
def embedded(embed, texts, tmp_path):
    """A table, and the file of its embeddings, made by one process."""
    path = write(tmp_path, "t.parquet", texts)
    return path, embed(path, "one.npy", *POOLED, num_processes=1)


@pytest.mark.slow
def test_processes_write_the_same_embeddings(embed, embedded):
    path, expected = embedded
    found = embed(path, "two.npy", *POOLED, num_processes=2)
    assert found.read_bytes() == expected.read_bytes()


@pytest.mark.slow
def test_beam_writes_the_same_embeddings(embed, embedded, tmp_path):
    path, expected = embedded
    embed(path, "a.npy", *POOLED, runner="DirectRunner", num_shards=2)
    parts = [np.load(tmp_path / f"a-{i:05d}-of-00002.npy") for i in range(2)]
    np.testing.assert_array_equal(np.concatenate(parts), np.load(expected))


def test_embeddings_are_the_same_in_all_formats(embed, texts, tmp_path):
    path = write(tmp_path, "t.parquet", texts)
    lines = embed(path, "out.jsonl", *POOLED).read_text().splitlines()
    lines = [json.loads(x) for x in lines]
    assert [x["id"] for x in lines] == [*range(ROWS)]
    expected = np.array([x["layers"][0]["values"] for x in lines])

    found = np.load(embed(path, "out.npy", *POOLED))
    np.testing.assert_allclose(found, expected, atol=1e-6)

    table = parquet.read_table(embed(path, "out.parquet", *POOLED))
    assert table.column_names == ["id", "embedding"]
    assert table["id"].to_pylist() == [*range(ROWS)]
    values = np.array(table["embedding"].to_pylist(), "f4")
    np.testing.assert_array_equal(values, found)
    with np.load(embed(path, "out.npz", *POOLED)) as arrays:
        np.testing.assert_array_equal(arrays["values"][:, 0], found)


OTHER_FILES = {  # name -> content, error
    "utf16.txt": ("a tree\n".encode("utf-16") * 3, "is UTF-16; expected UTF-8"),
    "le.txt": ("a tree\n".encode("utf-16-le") * 3, "is UTF-16; expected UTF-8"),
    "be.txt": ("a tree\n".encode("utf-16-be") * 3, "is UTF-16; expected UTF-8"),
    "bzip2.txt": (bz2.compress(b"a tree\n"), "is compressed with bzip2; expec"),
    "gzip.txt": (gzip.compress(b"a tree\n"), "is compressed with gzip; expect"),
    "latin.txt": (
        b"caf\xe9\n" * 3,
        "invalid UTF-8 byte 0xe9 at column 4; conv",
    ),
    "broken.jsonl": (b"a tree\n\n{}\n", "JSON is malformed: invalid char"),
}


@pytest.mark.parametrize("name", OTHER_FILES)
def test_a_file_of_another_kind_is_an_error(
    large, ask, model, run_script, tmp_path, name
):
    """Before anything is computed, and not only of its first line."""
    (tmp_path / "a.txt").write_text("a tree\n" * 7)
    content, message = OTHER_FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    start = f"error: {path}:1: {message}"
    many = f"{tmp_path}/a.txt,{path}"
    for named in ({}, {"num_processes": 1}, {"num_processes": 2}):
        _, err = large(code=2, input_file=many, **named)
        assert err.splitlines()[-1].startswith(start)
    code, out, err = run_script(
        extract_features,
        init_checkpoint=model,
        input_file=many,
        output_file=tmp_path / "out.jsonl",
        layers=-1,
        max_seq_length=13,
    )
    assert code == 2 and err.splitlines()[-1].startswith(start)
    assert not (tmp_path / "out.jsonl").exists()

    # Without an output file, the other lines are answered as they are read.
    words = ["--json"] if name.endswith(".jsonl") else []
    for named, source in (({"input_file": path}, path), ({}, "stdin")):
        code, _, err = ask(model, content, *words, **named)
        assert code == 2
        assert err.splitlines()[-1].startswith(f"error: {source}:1: {message}")


IDS = {  # name -> ids of some rows, type of the column, its values
    "floats": ({1: 1.5, 2: 1.9}, "double", None),
    "mixed numbers": ({1: 7, 96: 2.5}, "double", {1: 7.0, 96: 2.5}),
    "large numbers": ({1: 2**64 - 1, 96: 5}, "uint64", None),
    "larger numbers": (
        {1: 2**64, 96: -5},
        "string",
        {1: "18446744073709551616", 96: "-5"},
    ),
    "too exact": (
        {1: 2**53 + 1, 96: 2.5},
        "string",
        {1: "9007199254740993", 96: "2.5"},
    ),
    "objects": (
        {1: {"a": 3}, 96: {"b": "x"}},
        "struct<a: int64, b: string>",
        {1: {"a": 3, "b": None}, 96: {"a": None, "b": "x"}},
    ),
    "no table": ({1: {}, 2: {}}, "string", {1: "{}", 2: "{}"}),
    "types in a partition": ({1: "a", 2: 7}, "string", {1: "a", 2: "7"}),
    "types of partitions": (
        {1: True, 96: [3, "ä"]},
        "string",
        {1: "true", 96: '[3, "ä"]'},
    ),
}


@pytest.mark.parametrize("name", IDS)
def test_a_column_of_ids_has_a_type_that_holds_all(
    embed, large, texts, tmp_path, name
):
    """Each id is the given one, and null where there is none."""
    given, kind, expected = IDS[name]
    expected = given if expected is None else expected
    rows = [
        {"text": x} | ({"id": given[i]} if i in given else {})
        for i, x in enumerate(texts)
    ]
    lines = [json.dumps(x) for x in rows]
    lines[50] = "broken"
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(lines))
    found = embed(path, "e.parquet", "--pooling=mean", num_processes=1)
    large(input_file=path, output="p.parquet", num_processes=1)
    for file in (found, tmp_path / "p.parquet"):
        column = parquet.read_table(file)["id"]
        assert str(column.type) == kind
        assert column.to_pylist() == [expected.get(i) for i in range(ROWS)]


def test_lines_of_embeddings_have_the_ids_that_are_given(embed, tmp_path):
    path = tmp_path / "t.jsonl"
    rows = [{"text": "a", "id": 2**70}, {"text": "a"}, {"text": "a", "id": "x"}]
    path.write_text("\n".join(map(json.dumps, rows)))
    lines = embed(path, "e.jsonl", "--pooling=mean", rows="3 lines").read_text()
    found = [json.loads(x) for x in lines.splitlines()]
    assert [x.get("id", "no id") for x in found] == [2**70, "no id", "x"]


def test_ids_of_a_table_keep_their_type(embed, large, texts, tmp_path):
    """NaN is no id: pandas has it where an integer is missing."""
    path, ids = tmp_path / "t.parquet", [*map(float, range(ROWS))]
    ids[5] = float("nan")
    parquet.write_table(pyarrow.table({"id": ids, "text": texts}), path)
    expected = [None if i == 5 else float(i) for i in range(ROWS)]
    embed(path, "e.parquet", *POOLED)
    large("--id_column=id", input_file=path, output="p.parquet")
    for name in ("e.parquet", "p.parquet"):
        found = parquet.read_table(tmp_path / name)["id"]
        assert found.to_pylist() == expected
        assert str(found.type) == "double"


def test_without_ids_the_rows_have_numbers(embed, texts, tmp_path):
    """In the shards, too."""
    path = write(tmp_path, "t.txt", texts)
    embed(path, "e.parquet", "--pooling=mean", num_shards=2)
    found = [parquet.read_table(x)["id"] for x in sorted(tmp_path.glob("e-*"))]
    assert [y for x in found for y in x.to_pylist()] == [*range(ROWS)]


@pytest.mark.parametrize("kind", ["jsonl", "npy", "npz", "parquet"])
def test_what_a_killed_run_left_is_replaced(embed, texts, tmp_path, kind):
    left = tmp_path / f"out.{kind}.partial"
    left.write_text("left by a killed run")
    path = write(tmp_path, "t.txt", texts)
    embed(path, f"out.{kind}", "--pooling=mean", num_processes=1)
    assert not left.exists()


def test_a_bad_row_has_no_embedding(embed, texts, tmp_path):
    """Of tokens and of texts; the rows beside it have theirs."""
    path = tmp_path / "t.txt"
    raw = [x.encode() for x in texts]
    raw[3] = b"\xe9"
    path.write_bytes(b"\n".join(raw) + b"\n")
    lines = embed(path, "out.jsonl").read_text().splitlines()
    assert [json.loads(x)["linex_index"] for x in lines] == [*range(ROWS)]
    line = json.loads(lines[3])
    assert list(line) == ["linex_index", "error", "line"]
    assert (line["linex_index"], line["line"]) == (3, 4)
    assert [i for i, x in enumerate(lines) if "features" not in x] == [3]
    found = np.load(embed(path, "out.npy", "--pooling=cls"))
    assert np.flatnonzero(np.isnan(found).any(1)).tolist() == [3]
    with np.load(embed(path, "out.npz")) as arrays:
        assert np.diff(arrays["row_splits"])[2:5].all() == 0
        assert len(arrays["row_splits"]) == ROWS + 1


@pytest.fixture(scope="module")
def server():
    with ForkServer("predict", "extract_features") as server:
        yield server


@pytest.fixture
def kill(server, model, tmp_path):
    """Runs a script up to a call that kills it."""

    def run(path, function, number, script="predict", **flags):
        flags = flags or {"model": model}
        flags = {
            "input_file": path,
            "output_file": tmp_path / "out.jsonl",
            "partition_mb": MB,
            "num_processes": 1,
            **flags,
        }
        server.start(
            "tests.helpers.killed_runs:die",
            [f"--{name}={value}" for name, value in flags.items()],
            script,
            function,
            "",
            number,
            log=tmp_path / "log",
        )
        code = server.wait()
        assert code == -signal.SIGKILL, (tmp_path / "log").read_text()

    return run


ROW_JOB = "bert.inference.row_job"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "number", "finished"),
    [
        (f"{ROW_JOB}.RowJob.make_part", 1, 0),
        (f"{ROW_JOB}.RowJob.make_part", 3, 2),
        # A part without its counts, after two files of the job.
        ("bert.common.jobs.runners.whole_file", 6, 1),
        ("shutil.copyfileobj", 2, "all"),
        ("shutil.rmtree", 1, 0),  # the output is complete
    ],
)
def test_a_killed_run_continues(
    large, kill, texts, tmp_path, function, number, finished
):
    path = write(tmp_path, "t.jsonl", texts)
    expected, _ = large(input_file=path, output="straight.jsonl")
    kill(path, function, number)
    _, err = large(input_file=path, num_processes=1, num_shards=2)
    shards = sorted(tmp_path.glob("out-*-of-00002.jsonl"))
    assert b"".join(x.read_bytes() for x in shards) == expected
    match = re.search("continuing: (.*) of (.*) partitions are finished", err)
    if finished == "all":
        assert match[1] == match[2]
    else:
        assert (int(match[1]) if match else 0) == finished
    assert not [x for x in os.listdir(tmp_path) if x.startswith(".")]


@pytest.mark.slow
def test_killed_embeddings_continue(
    run_script, kill, texts, tmp_path, monkeypatch
):
    """In another folder, with other processes and shards.

    The output may be in the folder of the model.
    """
    folder = tmp_path / "files"
    folder.mkdir()
    embedding = classifier_files.embedding_model_of(folder)
    model = pathlib.Path(write_networks(folder, embedding))
    path = write(tmp_path, "t.jsonl", texts)
    named = {
        "init_checkpoint": model,
        "vocab_file": model / "vocab.txt",
        "output_file": model / "out.npy",
        "layers": -1,
        "pooling": "mean",
        "max_seq_length": 13,
    }
    more = {"input_file": path, "partition_mb": MB}
    straight = named | more | {"output_file": tmp_path / "straight.npy"}
    assert run_script(extract_features, **straight)[0] == 0
    path = os.path.relpath(path, fork_server.FOLDER)
    kill(path, f"{ROW_JOB}.RowJob.make_part", 4, "extract", **named)

    monkeypatch.chdir(tmp_path)
    named["vocab_file"] = folder / "vocab.txt"  # the same content
    named["init_checkpoint"] = "files/model"
    more |= {"input_file": "./t.jsonl", "num_processes": 2}
    code, _, err = run_script(extract_features, num_shards=2, **named, **more)
    assert code == 0, err
    assert "continuing: 3 of " in err
    found = [np.load(x) for x in sorted(model.glob("out-*.npy"))]
    expected = np.load(tmp_path / "straight.npy")
    np.testing.assert_array_equal(np.concatenate(found), expected)


@pytest.mark.slow
def test_another_model_input_or_flag_is_refused(
    large, kill, texts, tmp_path, tmp_path_factory
):
    path = write(tmp_path, "t.jsonl", texts)
    kill(path, f"{ROW_JOB}.RowJob.make_part", 3)
    start = f"error: {tmp_path}/.partial-"
    for named, name in (
        ({"batch_size": 7}, "of a run with another --batch_size; expected 256"),
        ({"engine": "keras"}, "of a run with another "),
        ({"partition_mb": 0.002}, "of a run with another --partition_mb"),
    ):
        _, err = large(code=2, input_file=path, **named)
        assert name in err.splitlines()[-1]
        assert err.splitlines()[-1].startswith(start)

    other = tmp_path_factory.mktemp("other")
    write_networks(other, classifier_of(other, pairs=True))
    _, err = large(code=2, input_file=path, model=other / "model")
    assert "of a run with another model; repeat that command" in err
    path.write_text(path.read_text() + "\n{}")
    _, err = large(code=2, input_file=path)
    assert f"of a run with another version of {path}" in err
