"""The files for schedulers: their shell runs here, with a scheduler's names.

Processes on this machine get the variables that SLURM and Kubernetes give.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from bert.common import command_line
from bert.common.errors import UserError
from bert.tasks.pretraining.settings import Settings
from bert.training import preemption
from tests.helpers import classifier_files, small, workers
from tests.helpers.pretraining_files import write_records

EXAMPLES = workers.ROOT / "examples"
STEPS = 300
FLAGS = {
    "train_batch_size": 12,
    "num_warmup_steps": 1,
    "num_train_steps": STEPS,
    "save_checkpoints_steps": 100,
    "log_steps": 10,
    "report": False,
}
WORDS = [f"--{name}={value}" for name, value in FLAGS.items()]


@pytest.fixture
def shared(tmp_path):
    """The volume of a cluster, with records and a config."""
    write_records(tmp_path / "records" / "train.tfrecord", 29)
    config = small.config(num_hidden_layers=1)
    (tmp_path / "bert_config.json").write_text(config.to_json())
    return tmp_path


def program(folder, name, text):
    """A program that a shell finds."""
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!{sys.executable}\nimport os, sys\n{text}")
    path.chmod(0o755)


def start(folder, command, cwd=workers.ROOT, **environment):
    environment |= {"PATH": f"{folder}/bin:{os.environ['PATH']}"}
    return subprocess.Popen(
        command,
        cwd=cwd,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


SRUN = """
import signal, subprocess
step = {
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_NUM_TASKS": "2",
    "SLURM_STEP_NODELIST": "localhost",
    "SLURM_STEP_TASKS_PER_NODE": "2",
    "SLURM_NODEID": "0",
}
assert sys.argv[1] == "--distribution=block"
tasks = [
    subprocess.Popen(
        sys.argv[2:],
        env={**os.environ, **step, "SLURM_PROCID": i, "SLURM_LOCALID": i},
    )
    for i in "01"
]
def forward(number, frame):
    for task in tasks:
        task.send_signal(number)
signal.signal(signal.SIGTERM, forward)
sys.exit(max(task.wait() for task in tasks))
"""


@pytest.mark.long
def test_a_job_of_slurm_is_requeued_until_it_is_complete(shared):
    job = str(os.getpid())
    calls = shared / "scontrol.txt"
    program(shared, "srun", SRUN)
    program(
        shared,
        "scontrol",
        f"print(*sys.argv[1:], file=open({str(calls)!r}, 'a'))",
    )
    paths = {
        "input_file": f"{shared}/records/*.tfrecord",
        "bert_config_file": shared / "bert_config.json",
        "output_dir": shared / "run",
    }
    command = ["bash", EXAMPLES / "slurm" / "pretrain.sbatch", *WORDS]
    command += [f"--{name}={path}" for name, path in paths.items()]
    names = {"SLURM_JOB_ID": job, "PYTHON": sys.executable}

    process = start(shared, command, **names)
    workers.wait_for_step(process, 20)
    process.terminate()
    _, err = process.communicate(timeout=600)
    assert process.returncode == 75, err
    assert err.count("is saved: SIGTERM") == 2
    assert calls.read_text() == f"requeue {job}\n"

    process = start(shared, command, **names)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    for i in "01":
        line = rf"^SLURM: this is worker {i} \(localhost:\d+\) of 2 processes$"
        assert re.search(line, err, re.M), err
    assert (shared / "run" / f"model.ckpt-{STEPS}.json").exists()
    assert calls.read_text() == f"requeue {job}\n"


ENDED = """
from bert.training.preemption import Preemption
Preemption(max_time=0.0).end({}, 9)
"""


@pytest.mark.parametrize(("step", "code"), [(3, 75), (9, 0)])
def test_a_job_whose_time_is_up_is_not_complete(tmp_path, step, code):
    """The run ends with 0 at --max_time, at whatever step."""
    calls = tmp_path / "scontrol.txt"
    program(tmp_path, "srun", ENDED.format(step))
    asked = f"print(*sys.argv[1:], file=open({str(calls)!r}, 'a'))"
    program(tmp_path, "scontrol", asked)
    command = ["bash", EXAMPLES / "slurm" / "pretrain.sbatch"]
    names = {"SLURM_JOB_ID": "7", "TMPDIR": tmp_path}
    process = start(tmp_path, command, **names, PYTHONPATH=workers.ROOT)
    _, err = process.communicate(timeout=600)
    assert process.returncode == code, err
    assert ("stopped at step 3 of 9" in err) == calls.exists() == (step < 9)
    assert not [*tmp_path.glob("tmp.*")]


@pytest.fixture(scope="module")
def kubernetes():
    """Service, job and container."""
    text = (EXAMPLES / "kubernetes" / "pretrain.yaml").read_text()
    service, job = yaml.safe_load_all(text)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    return service, job, container


def test_the_job_of_kubernetes_fits_its_service_and_our_exit_codes(kubernetes):
    service, job, container = kubernetes
    spec, name = job["spec"], job["metadata"]["name"]
    pod, workers_of = spec["template"]["spec"], container["env"][0]
    assert service["spec"] == {
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
        "selector": {"job-name": name},
    }
    assert pod["subdomain"] == service["metadata"]["name"] == name
    assert (spec["completionMode"], pod["restartPolicy"]) == (
        "Indexed",
        "Never",
    )
    assert (
        spec["completions"] == spec["parallelism"] == int(workers_of["value"])
    )
    actions = {}
    for rule in spec["podFailurePolicy"]["rules"]:
        codes = rule.get("onExitCodes", {"values": ["DisruptionTarget"]})
        actions |= dict.fromkeys(codes["values"], rule["action"])
        assert (
            codes.get("containerName", container["name"]) == container["name"]
        )
    assert actions == {
        "DisruptionTarget": "Ignore",
        preemption.RUN_AGAIN: "Ignore",
        UserError.exit_code: "FailJob",
    }


BERT = """
for i, port in enumerate({ports}):
    address = "127.0.0.1:" + str(port)
    text = os.environ["TF_CONFIG"].replace(f"bert-{{i}}.bert:2222", address)
    os.environ["TF_CONFIG"] = text
words = [word.replace("/shared", {shared!r}) for word in sys.argv[1:]]
command = [sys.executable, "-m", "bert", *words, *{words}]
os.execv(sys.executable, command)
"""


@pytest.mark.long
def test_the_pods_of_kubernetes_train_together(kubernetes, shared):
    *_, container = kubernetes
    ports = workers.free_ports(2)
    text = BERT.format(ports=ports, shared=str(shared), words=WORDS)
    program(shared, "bert", text)
    command = [*container["command"], *container["args"]]
    names = {x["name"]: x["value"] for x in container["env"]}
    pods = [
        start(shared, command, JOB_COMPLETION_INDEX=str(i), **names)
        for i in range(2)
    ]
    for i, pod in enumerate(pods):
        _, err = pod.communicate(timeout=600)
        assert pod.returncode == 0, err
        line = f"TF_CONFIG: this is worker {i} (127.0.0.1:{ports[i]}) of 2 "
        assert line in err
    assert (shared / "run" / f"model.ckpt-{STEPS}.json").exists()


def test_the_image_has_the_locked_packages_and_a_user_without_rights():
    text = (EXAMPLES / "Containerfile").read_text()
    for names in re.findall(r"^COPY (.*) /src", text, re.M):
        assert all(list(workers.ROOT.glob(name)) for name in names.split())
    base, *_, last = text.split("\nFROM ")[1:]
    assert "--require-hashes -r /src/requirements/lock.txt" in base
    assert "USER 1000\nENTRYPOINT" in last


def test_a_recipe_of_flags_is_read():
    words = [f"--flagfile={EXAMPLES}/mosaicbert_baseline.flags"]
    words += ["--input_file=records", "--output_dir=run"]
    settings = command_line.parse(["", *words], Settings, "")
    training = settings
    assert settings.num_train_steps * training.train_batch_size == 286_720_000
    assert training.learning_rate == 5e-4 and not settings.use_next_sentence


PYTHON = """
script, *words = sys.argv[1:]
words += ["--max_seq_length=13", "--num_train_epochs=1", "--noreport"]
os.execv(sys.executable, [sys.executable, {root!r} + "/" + script, *words])
"""


@pytest.mark.long
def test_every_checkpoint_of_a_run_is_fine_tuned(tmp_path):
    page = (workers.ROOT / "docs" / "finetuning.md").read_text()
    (text,) = re.findall(r"^```sh\n(for index .*?)^```", page, re.M | re.S)
    run = tmp_path / "run"
    for folder in (run, tmp_path / "mrpc"):
        folder.mkdir()
    classifier_files.write_model(run)
    classifier_files.write_task(tmp_path / "mrpc")
    for path in run.glob("bert_model.ckpt.*"):
        for step in (3, 11):
            shutil.copy(path, run / f"model.ckpt-{step}{path.suffix}")
    program(tmp_path, "python", PYTHON.format(root=str(workers.ROOT)))
    process = start(tmp_path, ["bash", "-ec", text], cwd=tmp_path)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    names = re.findall(r"^tuned/(.*)/eval_results.txt:eval_accuracy", out, re.M)
    assert names == ["11", "3"]
