"""Folders that are not exports, or that were damaged: one line."""

import json
import shutil

import pytest
import tensorflow as tf

from tests.helpers.classifier_files import shared_export


def write_other(folder):
    """A SavedModel of another program."""
    root, spec = tf.Module(), tf.TensorSpec([None], tf.string, name="text")
    root.call = tf.function(lambda text: {"label": text}, [spec])
    tf.saved_model.save(root, str(folder), root.call)


def test_a_model_of_another_program_is_refused(tmp_path, ask):
    write_other(tmp_path / "model")
    code, answers, err = ask(tmp_path / "model", b"a\n")
    assert (code, answers) == (2, [])
    assert "vocab.txt: no such file" in err.splitlines()[-1]


def relabel(folder):
    path = folder / "task.json"
    task = json.loads(path.read_text())
    path.write_text(json.dumps(task | {"labels": ["a", "b"]}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "keras", "openvino"),
    [
        (
            relabel,
            "3 outputs of the network; expected 2, the labels of task.json",
            "was changed after the export",
        ),
        (
            lambda folder: (folder / "task.json").unlink(),
            "no task is recorded",
            "task.json: no such file; copy it, too",
        ),
        (
            lambda folder: (folder / "vocab.txt").write_text("[PAD]\n"),
            "vocab.txt",
            "vocab.txt",
        ),
    ],
)
def test_a_changed_export_is_refused(
    tmp_path_factory, tmp_path, ask, damage, keras, openvino
):
    export = tmp_path / "export"
    shutil.copytree(shared_export(tmp_path_factory), export)
    damage(export)
    damage(export / "openvino")
    for engine, message in (("keras", keras), ("openvino", openvino)):
        code, answers, err = ask(export, b"a\n", engine=engine)
        assert (code, answers) == (2, []), err
        assert message in err.splitlines()[-1]
