"""export_hub from a checkpoint to folders that are whole, or not there."""

import errno
import os
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf

import export_hub
from bert.common.errors import UserError
from bert.common.formats import tensor_files
from bert.export import tf_hub as tf_hub_writer
from bert.export import tf_hub_export, tf_hub_settings
from bert.modeling import checkpoints, encoder, tf_hub
from bert.modeling.formats import conversion
from bert.modeling.formats.model_folder import ModelFolder
from tests.helpers import model_files, tf_hub_exports
from tests.helpers.small import H, S


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A checkpoint without heads and pooler; with vocabulary and config."""
    folder = tmp_path_factory.mktemp("encoder")
    return write(folder, lambda name: "pooler" not in name)


def write(folder, keep):
    """Writes those variables of a checkpoint of random weights."""
    model = encoder.build_encoder(model_files.write_sizes(folder))
    values = model_files.values_of(model).items()
    tensor_files.write(
        str(folder / "bert_model.ckpt"),
        {name: value for name, value in values if keep(name)},
    )
    return folder


@pytest.fixture
def export(run_script, folder, tmp_path):
    """Runs the script; returns (exit code, out, err)."""

    def run(*words, **named):
        named = {
            "model_checkpoint_path": folder / "bert_model.ckpt",
            "export_path": tmp_path / "out" / "export",
            **named,
        }
        given = {name: x for name, x in named.items() if x is not None}
        return run_script(export_hub, *words, **given)

    return run


def test_a_full_disk_leaves_nothing_behind(export, tmp_path, monkeypatch):
    def fail(module, path):
        (tmp_path / "out" / "export.partial" / "part").write_text("x")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tf_hub_writer, "save", fail)
    code, out, err = export()
    assert (code, out) == (2, "")
    assert "cannot be written: No space left on device" in err
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.long
def test_an_encoder_for_serving(export, folder, tmp_path):
    """Of half precision and one length; from a checkpoint without pooler."""
    stale = tmp_path / "out" / "export.partial"
    stale.mkdir(parents=True)
    (stale / "junk").write_text("of an export that was killed")
    code, out, err = export(
        "--nodo_lower_case",
        precision="float16",
        static_seq_length=S,
        copy_pooler_dense_to_encoder=True,
    )
    assert code == 0, err
    path = tmp_path / "out" / "export"
    assert [x.name for x in path.parent.iterdir()] == ["export"]
    assert not (path / "junk").exists()
    kept = tensor_files.read(str(folder / "bert_model.ckpt"))
    numbers = sum(x.size for x in kept.values()) + H * H + H
    size = f"({len(kept) + 2} variables, {numbers:,} numbers)"
    assert f"wrote an encoder {size} to {path}; reloaded, its out" in out
    assert "has no pooler; the weights of pooled_output are random" in err
    assert "float16 changes the outputs by up to " in err
    loaded = tf_hub.load(str(path), trust_model=True)
    assert {v.dtype for v in loaded.variables} == {tf.float16}
    assert list(loaded.trainable_variables) == []
    assert not hasattr(loaded, "mlm")
    assert not loaded.do_lower_case.numpy()
    rows = tf_hub_exports.theirs(tf_hub_exports.rows())
    assert loaded(rows)["sequence_output"].dtype == tf.float32
    with pytest.raises(ValueError, match="Could not find matching"):
        loaded({name: x[:, 1:] for name, x in rows.items()})
    # The weights come back without the graph, as the original's are.
    values = ModelFolder.open(str(path)).weights()[0]
    for name, value in kept.items():
        np.testing.assert_array_equal(values[name], np.float16(value))
    kernel = values["bert/encoder/layer_0/attention/self/query/kernel"]
    assert kernel.dtype == np.float32


@pytest.mark.slow
def test_an_export_of_other_weights_is_rejected(tmp_path_factory):
    exports = tf_hub_exports.made(tmp_path_factory)
    folders = (exports.folder, pathlib.Path(exports.encoder).parent)
    assert [sorted(os.listdir(folder)) for folder in folders] == [
        [
            *("bert_config.json", "bert_model.ckpt.data-00000-of-00001"),
            *("bert_model.ckpt.index", "vocab.txt"),
        ],
        ["encoder"],
    ]
    path = exports.folder / "bert_model.ckpt"
    settings = tf_hub_settings.Settings(
        model_checkpoint_path=str(path), export_type=tf_hub_settings.WITH_MLM
    )
    rows = conversion.seeded_inputs(exports.config)

    def compare():
        return tf_hub_export.compare(
            exports.encoder, settings, exports.model, rows
        )

    assert compare() < 1e-5
    named = checkpoints.model_variables(exports.model)
    for name in ("bert/pooler/dense/bias", "cls/predictions/output_bias"):
        value = named[name].numpy()
        named[name].assign(value + 0.1)
        with pytest.raises(UserError, match="after reloading"):
            compare()
        named[name].assign(value)
    assert keras.config.dtype_policy().name == "float32"
