"""A network of OpenVINO beside its files, and in threads."""

import concurrent.futures
import shutil

import numpy as np
import pytest

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
