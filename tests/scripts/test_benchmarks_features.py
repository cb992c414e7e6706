"""The benchmarks of vectors and of the in-graph tokenizer run."""

import pytest

from benchmarks import features, text_ops
from common import tensor_files
from data import batching
from modeling.encoder import build_encoder
from tests.helpers import model_files, text


@pytest.mark.long
def test_vectors_are_timed_in_both_modes(tmp_path):
    """The patched bucket lengths are restored."""
    config = model_files.write_sizes(tmp_path, max_position_embeddings=37)
    values = model_files.values_of(build_encoder(config))
    tensor_files.write(str(tmp_path / "bert_model.ckpt"), values)
    lines = ["the cat sees a dog .", "a bird", " ".join(["stone"] * 31)]
    (tmp_path / "lines.txt").write_text("\n".join(lines) + "\n")
    lengths = batching.bucket_lengths
    figures = features.measure(
        str(tmp_path / "lines.txt"), str(tmp_path), 37, runs=1
    )
    assert batching.bucket_lengths is lengths
    assert (figures["lines"], figures["max_seq_length"]) == (3, 37)
    assert set(figures["seconds"]) == {"by length", "padded"}
    assert figures["ratio"] > 0
    assert not (tmp_path / "vectors.npz").exists()


def test_the_in_graph_tokenizer_is_timed(tmp_path):
    text.write_vocabulary(tmp_path / "vocab.txt")
    lines = ["the cats see a dog .", "a bird, a fish"]
    figures = text_ops.measure(lines, str(tmp_path / "vocab.txt"), runs=1)
    assert len(figures) == 5
    # All count the same tokens: 7 (cat ##s, [UNK]) and 5.
    assert {figure["tokens"] for figure in figures} == {12}
    by_name = {figure["what"]: figure for figure in figures}
    assert by_name[text_ops.FASTEST]["ratio"] == 1.0
    assert all(figure["megabytes_per_second"] >= 0 for figure in figures)
