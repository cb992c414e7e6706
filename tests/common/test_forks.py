"""A fork of a process with an engine gets one line, and does not hang."""

import os
import signal

import pytest

import bert
from bert.common.errors import UserError
from bert.data import sequence_packing
from bert.modeling import tf_hub
from bert.modeling.engines.openvino_engine import OpenVINOEngine
from tests.helpers import library_files, text
from tests.helpers.classifier_files import shared_export

REFUSED = 7


def forked(call) -> int:
    """Calls a function in a fork; returns its exit code, or its signal."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(30)  # ends it if it hangs
        code = 1
        try:
            call()
            code = 0
        except UserError as error:
            code = REFUSED if "was forked" in str(error) else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.fixture(scope="module")
def pair():
    tokenizer = bert.Tokenizer("vocab.txt", tokens=text.VOCABULARY)
    return bert.new_encoder(library_files.config()), tokenizer


@pytest.fixture(scope="module")
def model(pair):
    return bert.TextClassifier(pair, ["a", "b"], max_length=13)


def test_keras_models_are_refused_in_a_fork(pair, model):
    answerer = bert.QuestionAnswerer(pair, max_length=13)
    for call in (
        lambda: model.predict(["the cat"], verbose=0),
        lambda: model.predict_on_batch(["the cat"]),
        lambda: model.evaluate(["the cat"], ["a"], verbose=0),
        lambda: answerer.predict((["the cat"], ["a dog"]), verbose=0),
        lambda: bert.embed(["the cat"], pair),
        lambda: bert.new_encoder("tiny"),
    ):
        assert forked(call) == REFUSED
    assert model.predict(["the cat"], verbose=0)["label"]


@pytest.mark.slow
def test_exports_are_refused_in_a_fork(tmp_path_factory):
    export = shared_export(tmp_path_factory)
    assert forked(lambda: tf_hub.load(export, trust_model=True)) == REFUSED

    # OpenVINO would abort the process.
    network = OpenVINOEngine(f"{export}/openvino")
    batch = sequence_packing.pack([([2, 3], [0, 0])]).inputs
    network(batch)
    assert forked(lambda: OpenVINOEngine(f"{export}/openvino")) == REFUSED
    assert forked(lambda: network(batch)) == REFUSED
