"""A network of OpenVINO beside its files, and in threads."""

import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys

import numpy as np
import openvino
import pytest

import predict
from bert.common import nvidia
from bert.common.errors import UserError
from bert.data import sequence_packing
from bert.modeling.engines import openvino_engine
from bert.modeling.engines.openvino_engine import OpenVINOEngine
from tests.helpers import classifier_files, small


@pytest.fixture
def folder(tmp_path, tmp_path_factory):
    shared = classifier_files.shared_networks(tmp_path_factory)
    return shutil.copytree(f"{shared}/openvino", tmp_path / "model")


def batch_of(seed, length=small.POSITIONS):
    ids = np.random.default_rng(seed).integers(0, 31, (5, length)).tolist()
    return sequence_packing.pack([(x, [0] * length) for x in ids]).inputs


def test_a_loaded_network_does_not_depend_on_its_files(folder):
    network, batch = OpenVINOEngine(str(folder)), batch_of(1)
    expected = network(batch).copy()
    with open(folder / openvino_engine.WEIGHTS, "r+b") as file:
        content = file.read()
        file.seek(0)
        file.write(np.random.default_rng(1).bytes(len(content)))
    np.testing.assert_array_equal(network(batch), expected)


def test_threads_get_their_own_answers(folder):
    network = OpenVINOEngine(str(folder))
    batches = [batch_of(seed, 3 + seed) for seed in range(8)]
    expected = [network(batch).copy() for batch in batches]

    def ask(number):
        found = network(batches[number % 8])
        return np.array_equal(found, expected[number % 8])

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(2000)))


def test_a_network_without_hashes_is_compared_with_its_files(
    folder, run_script
):
    """Earlier versions recorded no hashes."""
    path = folder / openvino_engine.FILE
    text, count = re.subn(r'<files value="[^"]*" />', "", path.read_text())
    assert count == 1
    path.write_text(text)
    for change, message in (
        ({"labels": ["a", "b"]}, "3 outputs of the network; expected 2, the "),
        ({"max_seq_length": 99}, "max_seq_length 99; expected at most 13"),
    ):
        task = json.loads((folder / "task.json").read_text())
        (folder / "task.json").write_text(json.dumps(task | change))
        code, _, err = run_script(predict, model=folder, input_file=__file__)
        (folder / "task.json").write_text(json.dumps(task))
        assert code == 2 and message in err


def test_a_network_of_an_earlier_version_is_refused(folder):
    """Its inputs were a batch without shared rows."""
    ops = openvino.opset15
    ids = ops.parameter([-1, -1], np.int32, "input_ids")
    ids.output(0).get_tensor().set_names({"input_ids"})
    network = openvino.Model([ops.convert(ids, np.float32)], [ids], "earlier")
    network.set_rt_info("float32", openvino_engine.PRECISION)
    openvino.save_model(network, folder / openvino_engine.FILE)
    with pytest.raises(UserError, match="earlier version; export the model a"):
        OpenVINOEngine(str(folder))


def truncate(path):
    os.truncate(path, 97)


def append(path):
    path.write_text(path.read_text() + "\n")


@pytest.mark.parametrize(
    ("change", "name", "message"),
    [
        (truncate, "openvino_model.xml", "cannot be loaded: "),
        (truncate, "openvino_model.bin", "Incorrect weights in bin file!"),
        (os.remove, "openvino_model.bin", "no such file; copy it, too"),
        (os.remove, "task.json", "no such file; copy it, too"),
        (append, "task.json", "task.json: was changed after the export"),
        (append, "vocab.txt", "vocab.txt: was changed after the export"),
    ],
)
def test_a_damaged_folder_is_one_line(folder, change, name, message):
    change(folder / name)
    with pytest.raises(UserError, match=message) as error:
        OpenVINOEngine(str(folder))
    assert "\n" not in str(error.value) and str(folder) in str(error.value)


REPLACED = """
import os, signal, sys, threading
from bert.modeling.engines.openvino_engine import OpenVINOEngine
networks = [OpenVINOEngine(sys.argv[1])]
def replace():
    networks[0] = OpenVINOEngine(sys.argv[1])
thread = threading.Thread(target=replace)
thread.start()
thread.join()
signal.signal(signal.SIGTERM, lambda *_: print("handled"))
os.kill(os.getpid(), signal.SIGTERM)
"""


def test_a_signal_is_handled_after_a_network_was_replaced(folder):
    """A server with AMX ended with signal 11 instead of its last answers."""
    argv = [sys.executable, "-c", REPLACED, str(folder)]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "handled\n"), done.stderr


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_refused(folder, value):
    model = openvino.Core().read_model(folder / openvino_engine.FILE)
    floats = [
        x.data.copy()
        for x in model.get_ops()
        if x.get_type_name() == "Constant" and x.data.dtype == np.float32
    ]
    del model  # its weights are mapped from the file
    largest = max(floats, key=np.size).tobytes()
    weights = folder / openvino_engine.WEIGHTS
    value = np.float32(value).tobytes()
    content = weights.read_bytes().replace(largest, largest[4:] + value)
    weights.write_bytes(content)
    with pytest.raises(UserError, match="weights that are NaN or infinite"):
        OpenVINOEngine(str(folder))


@pytest.mark.parametrize(
    ("is_installed", "has_gpu"), [(True, False), (False, False), (True, True)]
)
def test_openvino_is_used_where_it_is_installed_and_no_gpu_is(
    folder, monkeypatch, hide_package, is_installed, has_gpu
):
    """A network alone is always used: Keras has no weights for it."""
    model = folder.parent / "export"
    shutil.copytree(folder, model / "openvino")
    if not is_installed:
        hide_package("openvino")
    monkeypatch.setattr(nvidia, "has_usable_gpu", lambda: has_gpu)
    is_used = is_installed and not has_gpu
    expected = str(model / "openvino") if is_used else None
    assert openvino_engine.find_default(str(model)) == expected
    assert openvino_engine.find_default(str(folder)) == str(folder)
