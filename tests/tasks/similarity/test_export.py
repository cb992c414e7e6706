"""The SavedModel of an embedding model."""

import numpy as np
import pytest

import bert
from bert.data.pooling import TextVectors
from bert.modeling.formats import sentence_files
from bert.modeling.formats.model_folder import ModelFolder
from bert.serving import graphs
from bert.tasks.finetuning_settings import FineTuning
from bert.tasks.similarity.export import Embedder
from bert.tasks.similarity.settings import Settings
from tests.helpers import classifier_files, small

pytestmark = pytest.mark.slow


def test_vectors_are_truncated_and_cut_lines_counted(tmp_path, ask):
    classifier_files.write_model(tmp_path)
    how = TextVectors("max", True, {"query": "a "}, "query", 5)
    sentence_files.write(str(tmp_path), how, small.H, small.POSITIONS)
    model = ModelFolder.open(str(tmp_path))
    settings = Settings(finetuning=FineTuning(max_seq_length=7))
    embedder = Embedder(model, settings, model.weights()[0])
    graphs.save(embedder, str(tmp_path / "export"))

    texts = ["the cat " * 20, "a dog", "the bird sees the fish"]
    code, answers, err = ask(tmp_path / "export", "\n".join(texts).encode())
    assert code == 0, err
    expected = bert.embed(texts, str(tmp_path), max_length=7)
    assert expected.shape == (3, 5)
    found = [answer["vector"] for answer in answers]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert "7 tokens, which were cut: 2 of 3" in err
