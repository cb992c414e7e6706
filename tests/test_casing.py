"""How accents are treated goes wherever lower-casing goes."""

import json

import pytest

from bert.common import atomic, storage
from bert.common.errors import UserError
from bert.data.text import tokenizer_files, vocabulary
from bert.data.text.casing import Casing
from bert.data.text.tokenizer import Tokenizer
from bert.export import tf_hub
from bert.modeling.formats import checkpoint_files
from bert.modeling.formats.model_folder import ModelFiles, ModelFolder

TOKENS = [*vocabulary.SPECIAL_TOKENS, "elan", "élan", "Élan", "Elan"]
TEXT = "Élan élan Elan elan"
UNCASED = Tokenizer("vocab.txt", True, tokens=TOKENS)
CASED = Tokenizer("vocab.txt", False, tokens=TOKENS)


def test_the_casing_of_a_checkpoint_is_in_its_own_file_or_beside_it(tmp_path):
    prefix = tmp_path / "bert_model.ckpt"
    assert checkpoint_files.recorded_casing(str(prefix)) == Casing()
    tokenizer_files.write_config(str(tmp_path), Casing(True, False))
    assert checkpoint_files.recorded_casing(str(prefix)) == Casing(True, False)
    own = {"settings": {"do_lower_case": False, "strip_accents": True}}
    (tmp_path / "bert_model.ckpt.json").write_text(json.dumps(own))
    assert checkpoint_files.recorded_casing(str(prefix)) == Casing(False, True)


@pytest.mark.parametrize(
    ("trained", "given", "refused"),
    [
        ((True, None), (True, None), None),
        ((True, None), (True, True), None),
        ((True, True), (True, None), None),
        ((False, None), (False, False), None),
        ((True, False), (True, False), None),
        ((True, None), (True, False), "--strip_accents=False; expected True"),
        ((True, False), (True, None), "--strip_accents=True; expected False"),
        ((False, True), (False, None), "--strip_accents=False; expected True"),
        ((True, False), (False, None), "--do_lower_case=False; expected True"),
    ],
)
def test_a_run_has_the_accents_of_its_checkpoint(
    tmp_path, trained, given, refused
):
    prefix = str(tmp_path / "bert_model.ckpt")
    tokenizer_files.write_config(str(tmp_path), Casing(*trained))
    tokenizer = Tokenizer("vocab.txt", *given, tokens=TOKENS)
    folder = ModelFolder(prefix, "google", ModelFiles())
    if not refused:
        folder.check_casing(tokenizer)
        return
    with pytest.raises(UserError, match=refused):
        folder.check_casing(tokenizer)


@pytest.mark.parametrize(
    ("lower", "strip", "ids"),
    [
        (True, False, [6, 6, 5, 5]),
        (False, True, [8, 5, 8, 5]),
    ],
)
def test_a_preprocessor_keeps_accents(lower, strip, ids):
    tokenizer = Tokenizer("vocab.txt", lower, strip, tokens=TOKENS)
    preprocessor = tf_hub.Preprocessor(tokenizer, 7, with_offsets=False)
    found = preprocessor.tokenize([TEXT]).merge_dims(1, 2).to_list()
    assert found == [ids]
    assert preprocessor.do_lower_case.numpy() == lower
    strips = Casing(lower, strip).strips_accents
    assert preprocessor.strip_accents.numpy() == strips


def test_the_casing_of_a_folder_is_that_of_its_newest_checkpoint(tmp_path):
    for step, lower in ((9, False), (10, True)):
        own = {"settings": {"do_lower_case": lower}}
        prefix = tmp_path / f"model.ckpt-{step}"
        prefix.with_name(f"{prefix.name}.index").touch()
        prefix.with_name(f"{prefix.name}.json").write_text(json.dumps(own))
    for path in (f"{tmp_path}", f"{tmp_path}/"):
        ModelFolder.open(path).check_casing(UNCASED)
        with pytest.raises(UserError, match="model.ckpt-10: --do_lower_case=F"):
            ModelFolder.open(path).check_casing(CASED)


def test_the_labels_of_the_best_checkpoint_are_those_of_the_run():
    """Also on a store, where `..` is a name like others."""
    task = {"kind": "classes", "labels": ["a", "b"]}
    storage.make_folder("ram://run/best")
    atomic.write_whole("ram://run/task.json", json.dumps(task))
    assert checkpoint_files.task_of("ram://run/best") == task
    assert checkpoint_files.task_of("ram://run/best/") == task
    assert checkpoint_files.task_of("ram://run/best/model.ckpt-3") == task
