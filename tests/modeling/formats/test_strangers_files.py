"""The shapes of untrusted checkpoints are compared with their data."""

import json
import struct

import numpy as np
import pytest
import tensorflow as tf

from checks import model
from common import tensor_files
from common.errors import UserError
from common.formats import checksums
from modeling import checkpoints
from modeling.formats import huggingface, model_garden

CLAIMED = 127  # for each of nine dimensions of 1


@pytest.fixture
def bomb(tmp_path):
    """A checkpoint of four bytes whose index claims 127**9 numbers."""
    prefix = str(tmp_path / "bert_model.ckpt")
    tensor_files.write(prefix, {"a": np.ones([1] * 9, "f4")})
    dimension = b"\x12\x02\x08"  # TensorShapeProto.dim.size
    with open(f"{prefix}.index", "rb") as file:
        content = file.read()
    (end,) = (  # of the only block: its type and checksum follow
        i
        for i in range(1, len(content) - 5)
        if checksums.masked_crc32c(content[: i + 1])
        == struct.unpack("<I", content[i + 1 : i + 5])[0]
    )
    block = content[: end + 1]
    assert block.count(dimension + b"\x01") == 9
    block = block.replace(dimension + b"\x01", dimension + bytes([CLAIMED]))
    checksum = struct.pack("<I", checksums.masked_crc32c(block))
    with open(f"{prefix}.index", "wb") as file:
        file.write(block + checksum + content[end + 5 :])
    return prefix


def assert_reports(message, prefix):
    assert f"{prefix}: cannot be read: a {[CLAIMED] * 9}: " in message
    assert f" of {4 * CLAIMED**9:,} bytes" in message
    assert "; the data files have 4;" in message


@pytest.mark.parametrize("read", [checkpoints.read, model_garden.read])
def test_a_shape_is_compared_with_the_data_before_it_is_allocated(bomb, read):
    with pytest.raises(UserError) as caught:
        read(bomb)
    assert_reports(str(caught.value), bomb)


def test_the_doctor_reports_it_too(bomb):
    (found,) = model.examine(bomb, None, None, None)
    assert_reports(str(found), bomb)


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


def test_safetensors_that_claim_more_than_they_hold_are_rejected(tmp_path):
    entry = {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 4]}
    header = json.dumps({"a": entry}).encode()
    content = struct.pack("<Q", len(header)) + header + bytes(4)
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(UserError, match="cannot be read: "):
        huggingface.read(str(tmp_path))


@pytest.mark.parametrize(
    "named", ["{outside}/other.ckpt", "../outside/other.ckpt"]
)
def test_the_file_checkpoint_names_no_path(tmp_path, named):
    """Only the base name counts, in the folder of the file."""
    outside, folder = tmp_path / "outside", tmp_path / "model"
    for parent, names in ((outside, ["other"]), (folder, ["other", "newer"])):
        parent.mkdir()
        for name in names:
            prefix = str(parent / f"{name}.ckpt")
            tensor_files.write(prefix, {"a": np.ones(3, "f4")})
    named = named.format(outside=outside)
    (folder / "checkpoint").write_text(f'model_checkpoint_path: "{named}"\n')
    assert checkpoints.resolve(str(folder)) == f"{folder}/other.ckpt"
    for path in folder.glob("other.ckpt*"):
        path.unlink()
    assert checkpoints.resolve(str(folder)) == f"{folder}/newer.ckpt"
