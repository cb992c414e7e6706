"""Weights of strangers: sizes are compared with the data, no code runs."""

import json
import pathlib
import pickle
import struct

import numpy as np
import pytest
import tensorflow as tf

import convert_checkpoint
from bert.common import tensor_files
from bert.common.errors import UserError
from bert.modeling import checkpoints
from bert.modeling.formats import model_garden


@pytest.mark.parametrize("read", [checkpoints.read, model_garden.read])
def test_an_index_is_compared_with_the_size_of_the_data(tmp_path, read):
    prefix = str(tmp_path / "bert_model.ckpt")
    tensor_files.write(prefix, {"a": np.ones(7, "f4")})
    with open(f"{prefix}.data-00000-of-00001", "r+b") as file:
        file.truncate(8)
    with pytest.raises(UserError) as caught:
        read(prefix)
    assert (
        "cannot be read: the index lists tensors of 28 bytes; the data files "
        "have 8; the checkpoint is damaged: copy it again" in str(caught.value)
    )


def test_strings_and_slices_are_no_bombs(tmp_path):
    prefix = str(tmp_path / "model.ckpt")
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=["words", "sliced", "flags"],
        shape_and_slices=["", "7 3 0,7:0,3", ""],
        tensors=[[b"", b"a"], tf.ones([7, 3], tf.bfloat16), [True]],
    )
    found = tensor_files.read(prefix)
    assert found["words"].tolist() == [b"", b"a"]
    assert found["sliced"].shape == (7, 3)


class Exploit:
    """Touches a file when it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return pathlib.Path.touch, (self.marker,)


def test_weights_that_are_programs_are_not_read(tmp_path, run_script):
    """Pickles of transformers, and headers that claim too large sizes."""
    marker = tmp_path / "marker"
    header = {"x": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 4]}}
    raw = json.dumps(header).encode()
    for name, content in (
        ("pytorch_model.bin", pickle.dumps(Exploit(marker))),
        ("model.safetensors", struct.pack("<Q", len(raw)) + raw + b"1234"),
        ("model.safetensors", struct.pack("<Q", 1 << 62) + raw),
    ):
        folder = tmp_path / f"model{len(content)}"
        folder.mkdir()
        (folder / name).write_bytes(content)
        (folder / "config.json").write_text(
            json.dumps({"model_type": "bert", "vocab_size": 31})
        )
        code, _, err = run_script(
            convert_checkpoint,
            **{"input": folder, "to": "google"},
            output=tmp_path / "out",
        )
        assert code == 2, err
        assert err.count("\n") == 1
        assert not marker.exists()
        assert not (tmp_path / "out").exists()
