"""serve.py: mistakes of the user, versions, and its end."""

import concurrent.futures
import contextlib
import dataclasses
import errno
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys

import pytest

import serve
from bert.common.errors import UserError
from bert.serving import server, versions
from bert.serving.settings import Settings
from tests.helpers import http_server
from tests.helpers.classifier_files import shared_export, write_export


def test_missing_packages_are_named(run_script, hide_package, tmp_path):
    hide_package("flask")
    (tmp_path / "saved_model.pb").write_text("none")
    code, _, err = run_script(serve, model=tmp_path)
    assert code == 2
    assert err == (
        "error: missing packages: flask; "
        "in the checkout: pip install -r requirements/serve.txt\n"
    )


def test_a_port_in_use_is_reported_before_the_model_is_loaded(
    run_script, tmp_path
):
    (tmp_path / "saved_model.pb").write_text("none")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = run_script(serve, model=tmp_path, port=port)
    # A unit of systemd is not started again after 2.
    assert (code, err.count("\n")) == (75, 1)
    assert f"--port={port}: Address already in use" in err
    code, _, err = run_script(serve, model=tmp_path, host="no.such.invalid")
    assert (code, err.count("\n")) == (2, 1)


def test_an_address_that_the_machine_has_later_is_tried_again(
    run_script, tmp_path, monkeypatch
):
    (tmp_path / "saved_model.pb").write_text("none")

    def fail(*_, **__):
        raise OSError(errno.EADDRNOTAVAIL, "Cannot assign requested address")

    monkeypatch.setattr(socket, "create_server", fail)
    code, _, err = run_script(serve, model=tmp_path, host="192.0.2.1")
    assert (code, err.count("\n")) == (75, 1)
    assert "--host=192.0.2.1 --port=8501: Cannot assign" in err


def test_models_have_the_names_of_their_folders_or_others():
    for value, expected in (
        ("a/mails/", [("mails", "a/mails/")]),
        ("a=b/c,d/lr=3", [("a", "b/c"), ("lr=3", "d/lr=3")]),
        (
            "gs://b/mails,x=gs://b/y=2",
            [("mails", "gs://b/mails"), ("x", "gs://b/y=2")],
        ),
    ):
        assert dataclasses.replace(Settings(), model=value).models == expected


def test_the_newest_version_is_the_greatest_number(tmp_path):
    settings = Settings()
    for name in ("9", "10", "x11", "12.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "saved_model.pb").touch()
    (tmp_path / "12").mkdir()  # without a model

    def found():
        return versions.newest(
            settings.versions(str(tmp_path)), lambda x, _: settings.check(x)
        )[0]

    assert found() == (str(tmp_path / "10"), 10)
    (tmp_path / "10").rename(tmp_path / "0011")
    assert found() == (str(tmp_path / "0011"), 11)


def test_all_invalid_versions_are_reported(tmp_path, capsys, monkeypatch):
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
    (tmp_path / "2/saved_model.pb").touch()  # damaged

    def damaged(path, engine):
        raise KeyError("logits")

    monkeypatch.setattr(versions.Predictor, "open", damaged)
    model = versions.Model(str(tmp_path), Settings())
    with pytest.raises(UserError, match=f"{tmp_path / '1'}: no model"):
        model.open(lambda *_: None)
    assert f"warning: {tmp_path / '2'}: KeyError" in capsys.readouterr().err


@pytest.mark.slow
def test_an_older_version_is_served_where_the_newest_is_half_copied(
    run_script, tmp_path_factory, tmp_path, monkeypatch
):
    export = shared_export(tmp_path_factory)
    for number in ("3", "12"):
        shutil.copytree(export, tmp_path / "mails" / number)
    os.truncate(tmp_path / "mails/12/openvino/openvino_model.bin", 97)
    monkeypatch.setattr(server, "serve", lambda *_: None)
    code, _, err = run_script(serve, model=tmp_path / "mails", port=0)
    assert code == 0
    (line,) = [x for x in err.splitlines() if x.startswith("warning")]
    assert line.startswith(f"warning: {tmp_path / 'mails/12'}")
    assert "serving version 3 on" in err.splitlines()[-1]


@contextlib.contextmanager
def server_of(*flags):
    """Runs serve.py; yields the process and its port."""
    path = pathlib.Path(serve.__file__)
    with subprocess.Popen(
        [sys.executable, path, "--port=0", *flags],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        # Tests may run under nohup, which the server respects.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    ) as process:
        found = None
        while not found:
            line = process.stderr.readline()
            assert line, "the server has ended"
            found = re.search(r"version \d+ on http://127.0.0.1:(\d+)", line)
        try:
            yield process, int(found[1])
        finally:
            process.kill()


@pytest.mark.slow
def test_a_model_is_described_counted_and_ended(tmp_path_factory):
    folder = f"{shared_export(tmp_path_factory)}/openvino"
    with server_of(f"--model=mails={folder}") as (process, port):
        body = {"instances": ["the cat", "a dog", "a"]}
        code, _ = http_server.ask(port, "/v1/models/mails:predict", body)
        _, text = http_server.ask(port, "/metrics")
        assert code == 200
        assert 'bert_batch_size_sum{model="mails"} 3.0' in text

        process.send_signal(signal.SIGHUP)  # as the end of a terminal does
        assert process.wait(60) == 0


@pytest.mark.long
def test_a_server_ends_after_its_answers(tmp_path):
    """Under load from many clients; SIGTERM ends it with code 0."""
    folder = tmp_path / "mails"
    shutil.move(write_export(tmp_path), folder / "3")
    with server_of(
        f"--model={folder}", "--engine=keras", "--max_batch_size=8"
    ) as (process, port):
        bodies = [{"instances": [f"the cat {i}"]} for i in range(211)]
        for i in range(0, 211, 10):
            bodies[i] = b'{"instances": [7]}'
        predict = "/v1/models/mails:predict"
        with concurrent.futures.ThreadPoolExecutor(31) as pool:
            answers = [
                pool.submit(http_server.ask, port, predict, body)
                for body in bodies
            ]
            codes = [answer.result()[0] for answer in answers]
        assert codes == [200 if i % 10 else 400 for i in range(211)]
        process.send_signal(signal.SIGTERM)
        rest = process.stderr.read()
        assert "Traceback" not in rest, rest
    assert process.returncode == 0
