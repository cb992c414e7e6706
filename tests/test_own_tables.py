"""Tables of one's own: labels that lack, compression, delimiters."""

import types

import pytest
from absl import flags

import classifier_data
import classifier_run
import run_classifier
from classifier_data import TEST
from data import classification
from errors import UserError


def read(*words, **named):
    values = flags.FlagValues()
    run_classifier.define_flags(values)
    for name, value in {"output_dir": "none", **named}.items():
        words += (f"--{name}={value}",)
    values(["run_classifier", *words])
    return classifier_data.read(values, run_classifier.TASKS)


@pytest.mark.parametrize("flag", ["eval_file", "predict_file"])
@pytest.mark.parametrize(
    ("kind", "label"), [("--labels=a,b", '"b"'), ("--regression", "2.5")]
)
def test_null_is_no_label_but_where_answers_are_asked_for(
    tmp_path, capsys, flag, kind, label
):
    path = tmp_path / "x.jsonl"
    path.write_text(
        f'{{"t": "one", "l": {label}}}\n{{"t": "two", "l": null}}\n'
    )
    named = {flag: path, "text_column": "t", "label_column": "l"}
    words = ["--do_" + flag.removesuffix("_file"), kind]
    if flag == "eval_file":
        with pytest.raises(UserError, match="x.jsonl:2: the label is null"):
            read(*words, task_name="tsv", **named)
        return
    data = read(*words, task_name="tsv", **named)
    (part,) = data.of(TEST)
    assert (part.count, part.is_labelled) == (2, False)
    assert "1 of 2 rows have no label: no scores" in capsys.readouterr().err


def test_only_labelled_rows_are_scored():
    run = classifier_run.Classification.__new__(classifier_run.Classification)
    run._values = types.SimpleNamespace(predict_batch_size=3)
    run._logits = lambda *_: ([0, 0], [[1.0, 2.0], [3.0, 4.0]])
    source = classification.Source("x.jsonl", "t", label="l")
    for is_labelled, labels in ((True, [0, 0]), (False, None)):
        part = classifier_data.Part(TEST, "", source, 2, is_labelled)
        assert run.predict(part, "")[1] == labels
