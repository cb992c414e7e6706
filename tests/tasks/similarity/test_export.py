"""The export of an embedding model."""

import dataclasses

import numpy as np
import pytest

import bert
from bert.data.pooling import PoolingConfig
from bert.export import folder as export_folder
from bert.modeling.formats import sentence_files
from bert.modeling.formats.model_folder import ModelFolder
from tests.helpers import classifier_files, small, stranger

pytestmark = pytest.mark.slow


def test_the_text_signature_truncates_vectors_and_texts(tmp_path):
    classifier_files.write_model(tmp_path)
    how = PoolingConfig("max", True, {"query": "a "}, "query", 5)
    sentence_files.write(str(tmp_path), how, small.H, small.POSITIONS)
    model = ModelFolder.open(str(tmp_path)).read()
    model = dataclasses.replace(
        model, tokenizer=model.tokenizer.with_max_length(7)
    )
    export = tmp_path / "export"
    export.mkdir()
    export_folder.write_model(str(export), model)
    texts = ["the cat " * 20, "a dog", "the bird sees the fish"]
    expected = bert.embed(texts, str(tmp_path), max_length=7)
    assert expected.shape == (3, 5)
    found = stranger.ask(export, text=texts)["serving_default"]["vector"]
    np.testing.assert_allclose(found, expected, atol=1e-5)
