"""The whole pipeline with every path on an object store, with its faults."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from tests.helpers import classifier_files, killed_runs, object_store, small
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


def commands(root: str) -> list[list[str]]:
    """Scripts from raw text to answers, with every path in a folder."""
    model = (
        f"--vocab_file={root}/vocab.txt "
        f"--bert_config_file={root}/bert_config.json "
        f"--init_checkpoint={root}/run/model.ckpt-6 "
    )
    lines = f"""
prepare_corpus --input_file={root}/raw --output_file={root}/text/train.txt
create_vocab --input_file={root}/raw/*.txt --output_file={root}/own.txt
  --vocab_size=149
create_pretraining_data --input_file={root}/text/*.txt
  --vocab_file={root}/vocab.txt --output_file={root}/records/train.tfrecord
  --max_seq_length=32 --max_predictions_per_seq=5
run_pretraining --do_train --do_eval --num_train_steps=6 --num_warmup_steps=2
  --eval_steps=3 --max_eval_steps=2 --train_batch_size=8
  --input_file={root}/records/train.tfrecord*
  --eval_input_file={root}/records/train.tfrecord
  --bert_config_file={root}/bert_config.json --output_dir={root}/run
fill_mask --init_checkpoint={root}/run --input_file={root}/masks.txt
extract_features {model} --input_file={root}/masks.txt --layers=-1
  --max_seq_length=16 --output_file={root}/vectors.jsonl
doctor {model} --input_file={root}/records/train.tfrecord
  --output_dir={root}/run
convert_checkpoint --to=huggingface --output={root}/theirs
  --input={root}/run/model.ckpt-6
export_hub --model_checkpoint_path={root}/run/model.ckpt-6
  --export_path={root}/hub --vocab_file={root}/vocab.txt
  --bert_config_file={root}/bert_config.json
run_classifier {model} --do_train --do_predict --do_eval
  --task_name=MRPC --data_dir={root}/glue/MRPC --max_seq_length=32
  --train_batch_size=8 --num_train_epochs=1
  --output_dir={root}/mrpc --export_dir={root}/mrpc_export
predict --model={root}/mrpc_export --input_file={root}/pairs.txt
"""
    return [line.split() for line in lines.replace("\n ", " ").splitlines()[1:]]


def test_the_pipeline_with_every_path_on_the_store(store, scripts, tmp_path):
    local = tmp_path / "local"
    (local / "raw").mkdir(parents=True)
    for number in range(3):
        texts.write_corpus(local / "raw" / f"{number}.txt", 31, seed=number)
    texts.write_vocabulary(local / "vocab.txt")
    (local / "glue" / "MRPC").mkdir(parents=True)
    classifier_files.write_task(local / "glue" / "MRPC")
    config = small.config(
        vocab_size=len(texts.VOCABULARY), max_position_embeddings=32
    )
    (local / "bert_config.json").write_text(config.to_json())
    (local / "masks.txt").write_text("a [MASK] .\nthe [MASK] sees\n")
    (local / "pairs.txt").write_text("a cat\tthe dog\n")
    for path in local.rglob("*"):
        if path.is_file():
            store.put(f"all/{path.relative_to(local)}", path.read_bytes())
    ends = scripts.run_in_turn(commands("gs://b/all"))
    assert {code for code, *_ in ends} == {0}, ends
    assert '"probabilities"' in ends[-1][1]
    for name in ("run/report.html", "mrpc/report.html"):
        assert b"<html" in store.get(f"all/{name}")
    names = store.names("all")
    for name in ("theirs/model.safetensors", "hub/saved_model.pb", "own.txt"):
        assert f"all/{name}" in names
    assert [name for name in names if "partial" in name] == []
    # Nothing of the store's files has been written on this machine.
    assert not (tmp_path / "gs:").exists()
    assert [x for x in os.listdir(tmp_path) if x.startswith("bert-")] == []
