"""Messages of errors, also of missing packages: one line."""

import importlib.util
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bert.common import errors
from bert.common.errors import CONTROLS, UserError
from bert.common.jobs import any_runner
from bert.common.jobs.runners import Runners


@given(
    found=st.text(max_size=3000),
    path=st.none() | st.text(min_size=1, max_size=5),
    line=st.none() | st.integers(1, 99),
)
@example(found="a " * 1500, path="a", line=7)
def test_a_message_is_one_printable_line_of_limited_length(found, path, line):
    message = str(UserError(found, path=path, line=line, fix="do it"))
    assert not CONTROLS.search(message)
    assert len(message) <= 2000 + len(" ... ")
    assert message.endswith("; do it")
    if path is not None and path.isalnum():
        where = path if line is None else f"{path}:{line}"
        assert message.startswith(f"{where}: ")


def test_all_missing_packages_are_named(monkeypatch):
    errors.check_packages("serve", "flask", "numpy")
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name: "found" if name == "numpy" else None,
    )
    with pytest.raises(UserError) as caught:
        errors.check_packages(
            "serve", "flask", "numpy", "waitress", needed_by="--port"
        )
    assert str(caught.value) == (
        "--port: missing packages: flask, waitress; "
        "in the checkout: pip install -r requirements/serve.txt"
    )


def test_a_runner_without_beam_names_its_flag(monkeypatch):
    """Also a Beam that is installed and cannot be imported."""
    module = "bert.common.jobs.beam_runner"
    monkeypatch.delattr("bert.common.jobs.beam_runner", raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UserError, match="^--runner: missing packages: apache"):
        any_runner.check(Runners(runner="DirectRunner"), [])


@pytest.mark.parametrize(
    ("runner", "message"),
    [
        ("DataflowRunner", "Missing required option: project"),
        ("FlinkRunner", "job server"),
        ("PortableRunner", "without a job server; pass -- --job_endpoint"),
        ("Nothing", "expected a runner of Apache Beam"),
        ("os.path.join", "expected a runner of Apache Beam"),
        ("DirectRunner", "unknown option --nonsense"),
        ("DirectRunner", "--direct_num_workers: invalid int value: 'a'"),
    ],
)
def test_a_runner_that_cannot_start_is_one_line(runner, message, capfd):
    options = []
    if runner == "DirectRunner":
        name = "nonsense" if "nonsense" in message else "direct_num_workers"
        options = [f"--{name}=a"]
    if runner == "FlinkRunner":
        options = ["--flink_job_server_jar=missing"]
    with pytest.raises(UserError, match=f"^--runner={runner}") as caught:
        any_runner.check(Runners(runner=runner), options)
    assert message in str(caught.value) and "\n" not in str(caught.value)
    assert not capfd.readouterr().err
