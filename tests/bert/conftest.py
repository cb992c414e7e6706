"""Models of the library, which no test changes."""

import pytest

import bert
from bert.modeling import checkpoints
from tests.helpers import library_files, once


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Of a pre-trained model and of a run."""

    def write(folder):
        library_files.pretrained(folder / "model")
        library_files.run(folder / "run")

    return once.written(tmp_path_factory, "library", write)


@pytest.fixture(scope="module")
def values(folder):
    return checkpoints.read(str(folder / "model" / "bert_model.ckpt"))


@pytest.fixture(scope="module")
def loaded(folder):
    return bert.load_encoder(str(folder / "model"))
