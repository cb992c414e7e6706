"""Settings of run_classifier.py: own tables, casing."""

import pytest

from bert.common import command_line, flags
from bert.common.errors import UserError
from bert.data.text.casing import Casing
from bert.modeling.formats.model_folder import ModelFolder
from bert.tasks.classification.settings import OwnTables, Settings
from tests.helpers import run_folders
from tests.helpers import text as texts

OTHER_VALUES = {bool: "true", str: "x", tuple: "a,b", float: 0.25, int: 3}


def parse(*words):
    given = ("--do_predict", "--task_name=mrpc", "--output_dir=runs", *words)
    return command_line.parse(["script", *given], Settings, "")


@pytest.mark.parametrize("one", flags.flags_of(OwnTables), ids=lambda x: x.name)
def test_flags_of_own_tables_are_only_for_own_tables(one):
    with pytest.raises(UserError) as caught:
        parse(f"--{one.name}={OTHER_VALUES[one.kind]}")
    assert str(caught.value) == (
        f"--{one.name} with --task_name=mrpc; expected --task_name=tsv"
    )


@pytest.mark.parametrize("name", ["tsv", "csv", "JSONL", "txt"])
def test_own_tables_have_several_names(name):
    words = (f"--task_name={name}", "--text_column=0", "--predict_file=x")
    assert parse(*words).task == "tsv"


@pytest.mark.parametrize(
    ("words", "recorded", "expected"),
    [
        ((), (False, True), (False, True)),
        ((), (None, None), (False, None)),
        (("--do_lower_case",), (None, None), (True, None)),
        (("--do_lower_case",), (False, True), "--do_lower_case=True; expected"),
        (("--nostrip_accents",), (False, True), "--strip_accents=False; expec"),
    ],
)
def test_the_casing_is_that_of_the_model(
    monkeypatch, tmp_path, words, recorded, expected
):
    texts.write_vocabulary(tmp_path / "vocab.txt")
    with open(tmp_path / "vocab.txt", "a") as file:
        file.write("Cat\n")  # so that a guess is: not lower-cased
    (tmp_path / "bert_config.json").write_text('{"vocab_size": 99}')
    monkeypatch.setattr(ModelFolder, "casing", Casing(*recorded))
    settings = parse("--init_checkpoint", str(tmp_path), *words)
    if isinstance(expected, str):
        with pytest.raises(UserError, match=expected):
            run_folders.opened(settings).find_model()
        return
    tokenizer = run_folders.opened(settings).find_model().tokenizer
    assert (tokenizer.do_lower_case, tokenizer.strip_accents) == expected


@pytest.mark.parametrize(("stride", "is_allowed"), [(126, True), (127, False)])
def test_a_stride_is_at_most_a_window(stride, is_allowed):
    words = "--long_texts=windows", "--truncate=head", f"--doc_stride={stride}"
    if is_allowed:
        assert parse(*words).doc_stride == stride
        return
    with pytest.raises(UserError, match="expected at most a window, 126"):
        parse(*words)
