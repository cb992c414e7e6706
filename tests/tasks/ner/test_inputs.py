"""Labels of the words in the files of a run."""

import pytest

from bert.common.errors import UserError
from bert.tasks.ner import inputs
from bert.tasks.ner.settings import Settings
from bert.tasks.task import TRAIN
from tests.helpers import run_folders

UNTYPED = "a B\nb I\nc O\n\nd B\ne B\n"
SINGLE = "a S\nb O\n\nc E\n"


@pytest.mark.parametrize(
    ("content", "kind", "names", "first"),
    [
        (UNTYPED, "auto", ["O", "B", "I"], ["B", "I", "O"]),
        (UNTYPED, "any", ["B", "I", "O"], ["B", "I", "O"]),
        (SINGLE, "auto", ["E", "O", "S"], ["S", "O"]),
        (SINGLE, "entities", ["O", "B", "I"], ["B", "O"]),
    ],
)
def test_labels_without_a_type_are_entities_of_one(
    tmp_path, content, kind, names, first
):
    task, files = read(tmp_path, content, kind)
    assert task.to_json()["labels"] == names
    is_entities = names == ["O", "B", "I"]
    assert task.to_json()["kind"] == ("entities" if is_entities else "any")
    assert files[TRAIN][0].rows[0].labels == first


def test_the_first_label_of_another_kind_is_named(tmp_path):
    with pytest.raises(UserError, match=r"train.txt:4: labels such as 'DT'"):
        read(tmp_path, "a O\n\nb B\nc DT\nd NN\n", "entities")


def read(folder, content, kind):
    """The task and the files of a training."""
    path = folder / "train.txt"
    path.write_text(content)
    settings = run_folders.parse(
        Settings, "--do_train", train_file=path, label_kind=kind
    )
    return inputs.read(run_folders.opened(settings))
