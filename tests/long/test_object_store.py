"""The whole pipeline with every path on an object store, with its faults."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from tests.helpers import docs_files, killed_runs, object_store, small
from tests.helpers import text as texts
from tests.helpers.store_scripts import Scripts

pytestmark = pytest.mark.long
ROOT = pathlib.Path(__file__).parents[2]
RUN_AGAIN = 75
STEPS = 13


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with object_store.running(tmp_path_factory.mktemp("store")) as store:
        yield store


@pytest.fixture(autouse=True)
def no_faults(store):
    yield
    store.faults.clear()


@pytest.fixture
def scripts(store, tmp_path):
    return Scripts(store, tmp_path)


@pytest.fixture(scope="module")
def records(store, tmp_path_factory):
    """Records and config of a network with dropout, also on the store."""
    folder = tmp_path_factory.mktemp("records")
    killed_runs.write_files(folder)
    for path in folder.iterdir():
        store.put(f"given/{path.name}", path.read_bytes())
    return folder


def pretraining_flags(output: str) -> list[str]:
    words = killed_runs.flags(pathlib.Path("given"), output, STEPS)
    return [word.replace("=given/", "=gs://b/given/") for word in words]


@pytest.fixture(scope="module")
def straight(records, tmp_path_factory):
    """A run on this machine's disk, which nothing disturbs."""
    folder = tmp_path_factory.mktemp("straight")
    argv = killed_runs.flags(records, folder / "run", STEPS)
    subprocess.run(
        [sys.executable, str(ROOT / "run_pretraining.py"), *argv],
        check=True,
        capture_output=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
    )
    return folder / "run"


def download(store, prefix: str, folder) -> pathlib.Path:
    for name in store.names(prefix):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(store.get(name))
    return folder / prefix


def assert_same_end(store, output: str, straight, tmp_path):
    found = download(store, output, tmp_path / "found")
    ends = [killed_runs.digest(x, STEPS) for x in (found, straight)]
    assert ends[0] == ends[1]
    assert killed_runs.losses(found) == killed_runs.losses(straight)
    assert killed_runs.leftovers(found) == []


def saved_steps(log: str) -> list[int]:
    return [int(x) for x in re.findall(r"saved gs://\S+-(\d+)", log)]


def test_kills_lose_nothing(store, scripts, straight, tmp_path):
    argv, start = pretraining_flags("gs://b/killed"), []
    for step in (4, 8, 12):
        word = f"saved gs://b/killed/model.ckpt-{step}"
        log = scripts.kill_at(word, "run_pretraining", *argv)
        found = re.findall(r"resuming from step (\d+) ", log)
        assert found == start
        start = [str(step)]
    _, log = scripts.run("run_pretraining", *argv)
    assert re.findall(r"resuming from step (\d+) ", log) == start
    assert_same_end(store, "killed", straight, tmp_path)
    # Nothing of the store's files has been written on this machine.
    assert not (tmp_path / "gs:").exists()


def test_short_faults_change_nothing(store, scripts, straight, tmp_path):
    faults = [
        store.fault("cut", "GET /b/given/train.tfrecord$", 2),
        store.fault("503", "PUT .*upload_id.*|POST /upload/", 2),
        store.fault("503", r"GET /storage/v1/b/b/o\?", 1),
        store.fault("slow", "GET /b/given/config.json", 1, seconds=4),
    ]
    scripts.run("run_pretraining", *pretraining_flags("gs://b/faults"))
    assert [fault.kind for fault in faults if not fault.seen] == []
    assert_same_end(store, "faults", straight, tmp_path)


@pytest.mark.parametrize(
    "pattern",
    [
        "(POST|PUT) /upload/.*faults/model.ckpt-8.json",
        "(POST|PUT) /upload/.*faults/model.ckpt-8.data",
        "GET /b/given/train.tfrecord",
    ],
)
def test_a_store_that_is_gone_ends_the_run_with_one_line_and_75(
    store, scripts, straight, tmp_path, pattern
):
    output = f"gone{abs(hash(pattern))}/faults"
    argv = pretraining_flags(f"gs://b/{output}")
    fault = store.fault("503", pattern, 10**6)
    _, log = scripts.run("run_pretraining", *argv, code=(RUN_AGAIN,))
    assert fault.seen
    errors = [x for x in log.splitlines() if x.startswith("error: ")]
    assert len(errors) == 1
    assert "Traceback" not in log
    assert "gs://b/" in errors[0]
    assert "503" in errors[0]
    store.faults.clear()
    _, again = scripts.run("run_pretraining", *argv)
    for step in saved_steps(log)[-1:]:  # what was said to be saved
        assert f"resuming from step {step} " in again
    assert_same_end(store, output, straight, tmp_path)


def first_commands(root: str) -> list[tuple[str, str]]:
    """Scripts from raw text to a checkpoint, with every path in a folder."""
    return [
        (
            "prepare_corpus",
            f"--input_file={root}/raw --output_file={root}/text/train.txt",
        ),
        (
            "create_vocab",
            f"--input_file={root}/raw/*.txt --output_file={root}/vocab.txt "
            "--vocab_size=149",
        ),
        (
            "create_pretraining_data",
            f"--input_file={root}/text/*.txt --vocab_file={root}/vocab.txt "
            f"--output_file={root}/records/train.tfrecord "
            "--max_seq_length=32 --max_predictions_per_seq=5",
        ),
        (
            "run_pretraining",
            "--do_train --do_eval --num_train_steps=6 --num_warmup_steps=2 "
            "--eval_steps=3 --max_eval_steps=2 --train_batch_size=8 "
            f"--input_file={root}/records/train.tfrecord* "
            f"--eval_input_file={root}/records/train.tfrecord "
            f"--bert_config_file={root}/bert_config.json "
            f"--vocab_file={root}/vocab.txt --output_dir={root}/run",
        ),
    ]


def model_flags(root: str) -> str:
    """Flags of the run's checkpoint."""
    return (
        f"--vocab_file={root}/vocab.txt "
        f"--bert_config_file={root}/bert_config.json "
        f"--init_checkpoint={root}/run/model.ckpt-6 "
    )


def reading_commands(root: str) -> list[tuple[str, str, str]]:
    """Scripts that read the run; the last word is standard input."""
    model = model_flags(root)
    return [
        (
            "fill_mask",
            f"--init_checkpoint={root}/run --input_file={root}/masks.txt",
            "",
        ),
        (
            "extract_features",
            f"{model} --input_file={root}/sentences.txt --layers=-1 "
            f"--max_seq_length=16 --output_file={root}/vectors.jsonl",
            "",
        ),
        (
            "doctor",
            f"{model} --input_file={root}/records/train.tfrecord "
            f"--output_dir={root}/run",
            "",
        ),
        (
            "convert_checkpoint",
            f"--from=google --to=huggingface --output={root}/theirs "
            f"--input={root}/run/model.ckpt-6",
            "",
        ),
        (
            "export_hub",
            f"--model_checkpoint_path={root}/run/model.ckpt-6 "
            f"--export_path={root}/hub --vocab_file={root}/vocab.txt "
            f"--bert_config_file={root}/bert_config.json",
            "",
        ),
    ]


def tuning_commands(root: str) -> list[tuple[str, str, str]]:
    """Fine-tuning, its export and an answer to standard input."""
    return [
        (
            "run_classifier",
            f"{model_flags(root)} --noreport --do_train --do_predict --do_eval "
            f"--task_name=MRPC --data_dir={root}/glue/MRPC --max_seq_length=32 "
            "--train_batch_size=8 --num_train_epochs=1 "
            f"--output_dir={root}/mrpc --export_dir={root}/mrpc_export",
            "",
        ),
        (
            "predict",
            f"--model={root}/mrpc_export",
            "a cat\tthe dog\n",
        ),
    ]


def write_inputs(folder):
    """Raw text, a table and sentences."""
    for number in range(3):
        path = folder / "raw" / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        texts.write_corpus(path, 31, seed=number)
    docs_files.classification(folder)
    (folder / "masks.txt").write_text("a [MASK] .\nthe [MASK] sees\n")
    (folder / "sentences.txt").write_text("the dog .\nthe cat ||| a tree\n")


# Files with times, or with a graph in an order that TensorFlow chooses.
CHANGING = re.compile(r"tfevents|metrics.jsonl|\.html$|\.pb$|command.txt")
TIME = re.compile(r"\b\d[\d.,]*(?= (s|ms|examples/s|tokens/s)\b)")


def made(files: dict[str, bytes], root: str) -> dict[str, bytes]:
    """Name -> content of what scripts wrote, without its folder and times."""
    found = {}
    for name, content in files.items():
        if name.endswith(".lock") or name.startswith("run/report"):
            continue
        name = re.sub(r"tfevents.*", "tfevents", name)
        content = content.replace(root.encode(), b"ROOT")
        found[name] = b"" if CHANGING.search(name) else content
    return found


def said(root: str, outputs: list) -> list:
    """Exit codes and output of scripts, without their folder and times."""
    return [
        (code, TIME.sub("N", out.replace(root, "ROOT")))
        for code, out, _ in outputs
    ]


def test_the_pipeline_with_every_path_on_the_store(store, scripts, tmp_path):
    """Each script has the same output as with local files."""
    local, there = tmp_path / "local", "gs://b/all"
    write_inputs(local)
    for name in ("text", "records"):  # a store has no folders
        (local / name).mkdir()
    for path in local.rglob("*"):
        if path.is_file():
            store.put(f"all/{path.relative_to(local)}", path.read_bytes())
    for script, words in first_commands(there):
        if script == "create_pretraining_data":
            tokens = store.get("all/vocab.txt").count(b"\n")
            config = small.config(vocab_size=tokens, max_position_embeddings=32)
            store.put("all/bert_config.json", config.to_json().encode())
            (local / "bert_config.json").write_text(config.to_json())
        scripts.run(script, *words.split())
    theirs = scripts.run_in_turn(
        [*reading_commands(there), *tuning_commands(there)]
    )
    here = str(local)
    first = [(*command, "") for command in first_commands(here)]
    ours = scripts.run_in_turn(
        [*first, *reading_commands(here), *tuning_commands(here)]
    )
    assert {code for code, *_ in ours} == {0}, ours
    ours = ours[len(first) :]
    assert said(there, theirs) == said(str(local), ours)
    names = store.names("all")
    ends = [
        made({x[4:]: store.get(x) for x in names}, there),
        made(
            {
                str(x.relative_to(local)): x.read_bytes()
                for x in local.rglob("*")
                if x.is_file()
            },
            str(local),
        ),
    ]
    assert ends[0].keys() == ends[1].keys()
    assert [x for x in ends[0] if ends[0][x] != ends[1][x]] == []
    assert b"<html" in store.get("all/run/report.html")
    for script, model in (("serve", "mrpc_export"), ("demo", "run")):
        found = [
            scripts.served(script, f"{root}/{model}").replace(root, "ROOT")
            for root in (there, str(local))
        ]
        if script == "serve":
            found = list(map(json.loads, found))
        assert found[0] == found[1]
    # Nothing of the store's files has been written on this machine.
    assert not (tmp_path / "gs:").exists()
    left = [name for name in os.listdir(tmp_path) if name.startswith("bert-")]
    assert left == []


def test_beam_passes_nothing_through_this_machine(store, scripts, tmp_path):
    """The same records as without Beam, from and to the store."""
    texts.write_corpus(tmp_path / "0.txt", 31)
    texts.write_vocabulary(tmp_path / "vocab.txt")
    store.put("beam/0.txt", (tmp_path / "0.txt").read_bytes())
    store.put("beam/vocab.txt", (tmp_path / "vocab.txt").read_bytes())
    named = {
        "input_file": "gs://b/beam/0.txt",
        "vocab_file": "gs://b/beam/vocab.txt",
        "max_seq_length": 32,
        "max_predictions_per_seq": 5,
    }
    ours, beams = "gs://b/ours/x.tfrecord", "gs://b/beams/x.tfrecord"
    scripts.run("create_pretraining_data", **named, output_file=ours)
    words = "--runner=DirectRunner -- --direct_num_workers=2 "
    words += "--direct_running_mode=multi_processing"
    flags = [f"--{name}={value}" for name, value in named.items()]
    scripts.run(
        "create_pretraining_data",
        *flags,
        f"--output_file={beams}",
        *words.split(),
    )
    assert store.get("ours/x.tfrecord") == store.get("beams/x.tfrecord")
    assert [x for x in store.names("beams") if "partial" in x] == []
    assert not (tmp_path / "gs:").exists()
