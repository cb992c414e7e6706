"""The whole pipeline with every path on an object store, with its faults."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from tests.helpers import classifier_files, killed_runs, object_store, small
from tests.helpers import text as texts

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


class Scripts:
    """Runs scripts in processes whose `gs://` is the store."""

    def __init__(self, store, folder):
        self._folder = folder
        retries = {
            "GCS_RETRY_CONFIG_MAX_RETRIES": "3",
            "GCS_RETRY_CONFIG_INIT_DELAY_TIME_US": "100000",
            "GCS_RETRY_CONFIG_MAX_DELAY_TIME_US": "200000",
            "GCS_READ_REQUEST_TIMEOUT_SECS": "2",
            "XDG_STATE_HOME": str(folder),
            "TMPDIR": str(folder),  # nothing else is left on this machine
        }
        self._environment = {
            **os.environ,
            **store.environment(**retries),
            "CUDA_VISIBLE_DEVICES": "-1",
        }

    def start(self, script: str, *words: str, **named) -> subprocess.Popen:
        argv = [sys.executable, str(ROOT / f"{script}.py"), *words]
        argv += [f"--{name}={value}" for name, value in named.items()]
        return subprocess.Popen(
            argv,
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(
        self,
        script: str,
        *words: str,
        stdin: str = "",
        code: tuple[int, ...] = (0,),
        **named,
    ) -> tuple[str, str]:
        """Runs a script to its end; returns what it prints and logs."""
        process = self.start(script, *words, **named)
        found = process.communicate(stdin.encode(), timeout=600)
        out, error = (text.decode() for text in found)
        assert process.returncode in code, error
        return out, error

    def kill_at(self, word: str, script: str, *words: str, **named) -> str:
        """Kills a script when it logs a word; returns its log."""
        process = self.start(script, *words, **named)
        log = ""
        for line in process.stderr:
            log += line.decode()
            if word in log:
                process.send_signal(signal.SIGKILL)
                break
        process.communicate()
        assert process.returncode == -signal.SIGKILL, log
        return log


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
        store.fault("lag", r"GET /storage/v1/b/b/o\?", 10**6, seconds=3),
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


def test_a_lagging_listing_hides_no_checkpoint(store, records, scripts):
    """The step that was saved last is found by its name."""
    argv = pretraining_flags("gs://b/lagging")
    word = "saved gs://b/lagging/model.ckpt-8"
    scripts.kill_at(word, "run_pretraining", *argv)
    store.fault("lag", r"GET /storage/v1/b/b/o\?", 10**6, seconds=10**6)
    _, log = scripts.run("run_pretraining", *argv)
    assert re.findall(r"resuming from step (\d+) ", log) == ["8"]


def test_the_pipeline_with_every_path_on_the_store(store, scripts, tmp_path):
    local = tmp_path / "local"
    local.mkdir()
    for number in range(3):
        texts.write_corpus(local / f"{number}.txt", 31, seed=number)
        content = (local / f"{number}.txt").read_bytes()
        store.put(f"raw/{number}.txt", content)
    # sentence splitting, vocabulary, records
    scripts.run(
        "prepare_corpus",
        input_file="gs://b/raw",
        output_file="gs://b/text/train.txt",
    )
    assert store.names("text") == ["text/train.txt"]
    scripts.run(
        "create_vocab",
        input_file="gs://b/raw/*.txt",
        output_file="gs://b/vocab.txt",
        vocab_size=149,
    )
    assert store.get("vocab.txt").startswith(b"[PAD]\n")
    vocab_size = store.get("vocab.txt").count(b"\n")
    config = small.config(vocab_size=vocab_size, max_position_embeddings=32)
    store.put("bert_config.json", config.to_json().encode())
    scripts.run(
        "create_pretraining_data",
        input_file="gs://b/raw/*.txt",
        output_file="gs://b/records/train.tfrecord",
        vocab_file="gs://b/vocab.txt",
        max_seq_length=32,
        max_predictions_per_seq=5,
    )
    assert "records/train.tfrecord" in store.names("records")
    scripts.run(
        "run_pretraining",
        "--do_train",
        "--do_eval",
        input_file="gs://b/records/train.tfrecord",
        bert_config_file="gs://b/bert_config.json",
        output_dir="gs://b/run",
        num_train_steps=6,
        num_warmup_steps=2,
        eval_steps=3,
        eval_input_file="gs://b/records/train.tfrecord",
        max_eval_steps=2,
        train_batch_size=8,
    )
    assert "run/eval_results.txt" in store.names("run")
    check_readers(store, scripts)
    check_classifier(store, scripts, tmp_path)
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


def check_readers(store, scripts):
    """Scripts that read the folder of the run."""
    out, _ = scripts.run(
        "fill_mask", stdin="a [MASK] .\n", init_checkpoint="gs://b/run"
    )
    assert out.strip()
    store.put("sentences.txt", b"the dog .\nthe cat ||| a tree\n")
    common = {
        "input_file": "gs://b/sentences.txt",
        "vocab_file": "gs://b/vocab.txt",
        "bert_config_file": "gs://b/bert_config.json",
        "init_checkpoint": "gs://b/run/model.ckpt-6",
        "max_seq_length": 16,
        "layers": -1,
    }
    scripts.run(
        "extract_features", **common, output_file="gs://b/vectors.jsonl"
    )
    assert len(store.get("vectors.jsonl").splitlines()) == 2
    out, _ = scripts.run(
        "doctor",
        input_file="gs://b/records/train.tfrecord",
        output_dir="gs://b/run",
        code=(0, 1),  # six steps teach nothing
    )
    assert "whole checkpoints: 6" in out
    scripts.run("report", "gs://b/run")
    assert b"<html" in store.get("run/report.html")
    scripts.run(
        "convert_checkpoint",
        **{"from": "google", "to": "huggingface"},
        input="gs://b/run/model.ckpt-6",
        output="gs://b/theirs",
    )
    assert "theirs/model.safetensors" in store.names("theirs")
    scripts.run(
        "export_hub",
        model_checkpoint_path="gs://b/run/model.ckpt-6",
        export_path="gs://b/hub",
    )
    assert "hub/saved_model.pb" in store.names("hub")


def check_classifier(store, scripts, tmp_path):
    """Fine-tuning, its export, and answers of the export."""
    classifier_files.write_task(tmp_path)
    for name in ("train", "dev", "test"):
        content = (tmp_path / f"{name}.tsv").read_bytes()
        store.put(f"glue/MRPC/{name}.tsv", content)
    words = (
        "--do_train=true --do_eval=true --do_predict=true --task_name=MRPC "
        "--data_dir=gs://b/glue/MRPC --vocab_file=gs://b/vocab.txt "
        "--bert_config_file=gs://b/bert_config.json "
        "--init_checkpoint=gs://b/run/model.ckpt-6 --max_seq_length=17 "
        "--train_batch_size=8 --learning_rate=2e-5 --num_train_epochs=1.0 "
        "--output_dir=gs://b/mrpc_output/ --export_dir=gs://b/mrpc_export"
    ).split()
    scripts.run("run_classifier", *words)
    names = store.names("mrpc_output")
    assert "mrpc_output/eval_results.txt" in names
    rows = store.get("mrpc_output/test_results.tsv").splitlines()
    assert len(rows) == classifier_files.TEST
    shares = np.array([row.split(b"\t") for row in rows], float)
    np.testing.assert_allclose(shares.sum(1), 1, atol=1e-5)
    out, _ = scripts.run(
        "predict", stdin="a cat\tthe dog\n", model="gs://b/mrpc_export"
    )
    assert json.loads(out)
