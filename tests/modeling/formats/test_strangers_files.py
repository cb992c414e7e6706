"""Weights of strangers: sizes are compared with the data, no code runs."""

import json
import pathlib
import pickle
import struct

import keras
import numpy as np
import pytest
import tensorflow as tf

import bert
import convert_checkpoint
import export_hub
import extract_features
import fill_mask
import run_similarity
from bert.common.errors import UserError
from bert.common.formats import tensor_files
from bert.modeling import checkpoints
from bert.modeling.formats import model_garden
from bert.modeling.formats.model_folder import ModelFolder
from bert.tasks.features import inspection
from tests.helpers import library_files


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


@pytest.mark.parametrize("form", ["google", "huggingface"])
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"hidden_size": 5 << 20}, "hidden_size is 5242880 in the config, "),
        ({"num_hidden_layers": 999}, "num_hidden_layers is 999 in the config"),
        ({"intermediate_size": 1 << 24}, "intermediate_size is 16777216 in"),
    ],
)
def test_sizes_are_compared_before_a_network_is_built(
    tmp_path, monkeypatch, form, changed, message
):
    folder = tmp_path / "google"
    values = library_files.pretrained(folder)
    if form == "huggingface":
        folder = tmp_path / form
        library_files.huggingface(folder, values)
    name = "config" if form == "huggingface" else "bert_config"
    path = folder / f"{name}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))

    def refuse(*arguments, **named):
        raise AssertionError("a variable was allocated")

    monkeypatch.setattr(keras.layers.Layer, "add_weight", refuse)
    lines, output = tmp_path / "lines", tmp_path / "out.jsonl"
    lines.write_text("a [MASK]\n")
    words = [f"--init_checkpoint={folder}", f"--input_file={lines}"]
    wanted = [f"--output_file={output}", "--layers=-1"]
    table = tmp_path / "table.csv"
    table.write_text("text,text_b,score\nthe cat,a dog,0.5\n")
    trained = [words[0], f"--train_file={table}", "--train_batch_size=1"]
    trained += ["--do_train", f"--output_dir={tmp_path}/run"]
    length = "--max_seq_length=7"
    exported = [f"--model_checkpoint_path={folder}"]
    exported += [f"--export_path={tmp_path}/export"]
    for run in (
        lambda: bert.load_encoder(str(folder)),
        lambda: extract_features.main(["", *words, *wanted, length]),
        lambda: fill_mask.main(["", *words]),
        lambda: export_hub.main(["", *exported]),
        lambda: run_similarity.main(["", *trained, length]),
        lambda: inspection.Inspector(ModelFolder.open(str(folder))),
    ):
        with pytest.raises(UserError, match=message):
            run()


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
            json.dumps({"vocab_size": 31, "architectures": ["BertForX"]})
        )
        code, _, err = run_script(
            convert_checkpoint,
            **{"input": folder, "to": "google"},
            output=tmp_path / "out",
        )
        assert code == 2, err
        assert err.count("\n") == 1
        assert ("BertForX.from_pretrained" in err) == name.endswith("bin")
        assert not marker.exists()
        assert not (tmp_path / "out").exists()
