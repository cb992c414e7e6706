"""The library in an environment of its own, outside of the checkout."""

import os
import pathlib
import re
import subprocess
import sys
import sysconfig

import pytest

ROOT = pathlib.Path(__file__).parents[2]
SHORT = {  # flags of the quickstart in short form
    "num_train_steps": 20,
    "num_warmup_steps": 2,
    "eval_steps": 10,
    "dupe_factor": 1,
    "max_eval_steps": 2,
    "num_train_epochs": 1,
}


def run(*words, cwd, **changed):
    inherited = ("PATH", "HOME", "LANG", "TMPDIR")
    environment = {x: os.environ[x] for x in inherited if x in os.environ}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=environment | changed,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def environment(tmp_path):
    """`bin` of a new environment, with the packages of this one."""
    run(sys.executable, "-m", "venv", "--without-pip", "venv", cwd=tmp_path)
    binaries = tmp_path / "venv" / "bin"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    (site,) = run(binaries / "python", "-c", code, cwd=tmp_path).splitlines()
    packages = sysconfig.get_path("purelib")
    pathlib.Path(site, "packages.pth").write_text(f"{packages}\n")
    words = ("--no-deps", "--no-build-isolation", "--no-index", ROOT)
    run(
        *(binaries / "python", "-m", "pip", "install", *words),
        cwd=tmp_path,
    )
    return binaries


@pytest.mark.long
def test_the_quickstart_runs_from_the_command(environment, tmp_path):
    """Every command of it, as `bert SCRIPT`, beside a user's own modules."""
    work = tmp_path / "work"
    work.mkdir()
    for name in ("data", "modeling", "common", "tasks"):
        (work / f"{name}.py").write_text("raise ImportError('not this one')\n")
    configs = run(environment / "bert", "configs", cwd=work).strip()
    assert pathlib.Path(configs).is_relative_to(tmp_path)
    script = (ROOT / "examples" / "quickstart.sh").read_text()
    script, count = re.subn(r'"\$python" (\w+)\.py', r"bert \1", script)
    assert count
    script = script.replace("examples/", f"'{ROOT}'/examples/")
    script = script.replace("bert/configs/", f"'{configs}'/")
    script = script.replace('cd "$(dirname "$0")/.."', "")
    for name, value in SHORT.items():
        script = re.sub(rf"--{name}=\d+", f"--{name}={value}", script)
    (work / "quickstart.sh").write_text(script)
    path = f"{environment}:{os.environ['PATH']}"
    # The corpus is made of the packages of the running Python.
    words = ("bash", "quickstart.sh", sys.executable, "out")
    out = run(*words, cwd=work, PATH=path)
    assert '"probabilities"' in out
    assert (work / "out" / "run" / "checkpoint").is_file()
