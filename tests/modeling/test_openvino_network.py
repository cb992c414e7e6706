"""A network of OpenVINO beside its files, and in threads."""

import concurrent.futures
import json
import re
import shutil

import numpy as np
import openvino
import pytest

import bert
import predict
from bert.common.errors import UserError
from bert.modeling import openvino_network
from bert.modeling.openvino_network import Network
from tests.helpers import small
from tests.helpers.classifier_files import shared_export

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path, tmp_path_factory):
    export = shared_export(tmp_path_factory)
    return shutil.copytree(f"{export}/openvino", tmp_path / "model")


def batch_of(seed, shape=(3, small.POSITIONS)):
    ids = np.random.default_rng(seed).integers(0, 31, shape).astype(np.int32)
    zeros = np.zeros_like(ids)
    return {"input_ids": ids, "input_mask": zeros + 1, "segment_ids": zeros}


def test_a_loaded_network_does_not_depend_on_its_files(folder):
    network, batch = Network(str(folder)), batch_of(1)
    expected = network(batch)["logits"].copy()
    with open(folder / openvino_network.WEIGHTS, "r+b") as file:
        content = file.read()
        file.seek(0)
        file.write(np.random.default_rng(1).bytes(len(content)))
    np.testing.assert_array_equal(network(batch)["logits"], expected)


def test_threads_get_their_own_answers(folder):
    network = Network(str(folder))
    batches = [batch_of(seed, (1, 3 + seed)) for seed in range(8)]
    expected = [network(batch)["logits"].copy() for batch in batches]

    def ask(number):
        found = network(batches[number % 8])["logits"]
        return np.array_equal(found, expected[number % 8])

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(2000)))


@pytest.mark.parametrize(
    "name",
    ["task.json", "vocab.txt"],
)
def test_a_changed_file_is_named(folder, name, run_script):
    """Swapped labels would be answered without a word."""
    (folder / name).write_text((folder / name).read_text() + "\n")
    code, _, err = run_script(predict, model=folder, input_file=__file__)
    assert (code, err.count("error: ")) == (2, 1)
    assert f"error: {folder / name}: was changed after the export" in err
    (folder / name).unlink()
    with pytest.raises(UserError, match="no such file; copy it, too"):
        Network(str(folder))


def test_an_older_network_is_compared_with_its_labels(folder, run_script):
    """Earlier versions recorded no hashes."""
    path = folder / openvino_network.FILE
    text, count = re.subn(r'<files value="[^"]*" />', "", path.read_text())
    assert count == 1
    path.write_text(text)
    for change, message in (
        ({"labels": ["a", "b"]}, "logits [..., 3]; expected logits [..., 2], "),
        ({"max_seq_length": 99}, "task.json: max_seq_length 99; expected at "),
    ):
        task = json.loads((folder / "task.json").read_text())
        (folder / "task.json").write_text(json.dumps(task | change))
        code, _, err = run_script(predict, model=folder, input_file=__file__)
        (folder / "task.json").write_text(json.dumps(task))
        assert code == 2 and message in err
    with pytest.raises(UserError, match="expected sequence_output .* encoder"):
        bert.embed("a", str(folder))


def test_more_tokens_than_positions_are_one_line(folder):
    network = Network(str(folder))
    with pytest.raises(UserError, match="openvino_model.xml: cannot be run: "):
        network(batch_of(1, (1, small.POSITIONS + 1)))


def test_weights_that_are_not_finite_are_refused(folder):
    model = openvino.Core().read_model(folder / openvino_network.FILE)
    floats = [
        x.data.copy()
        for x in model.get_ops()
        if x.get_type_name() == "Constant" and x.data.dtype == np.float32
    ]
    del model  # its weights are mapped from the file
    largest = max(floats, key=np.size).tobytes()
    weights = folder / openvino_network.WEIGHTS
    nan = np.float32(np.nan).tobytes()
    content = weights.read_bytes().replace(largest, largest[4:] + nan)
    weights.write_bytes(content)
    with pytest.raises(UserError, match="weights that are NaN or infinite"):
        Network(str(folder))
