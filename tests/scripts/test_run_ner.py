"""run_ner on names with a known grammar."""

import json

import numpy as np
import pytest

import run_ner
from bert.common.formats import tensor_files
from bert.tasks.ner import conll
from tests.helpers import names, run_folders, trained

pytestmark = pytest.mark.slow


@pytest.fixture
def run(tmp_path_factory):
    """The folder after training, evaluation and prediction."""
    return trained.folder(tmp_path_factory, "names").run


def labels_of(path, column=-1):
    sentences = conll.read(str(path), conll.Columns(label=column))
    return [x.labels for x in sentences]


def test_the_grammar_is_learned(run):
    found = run_folders.results(run)
    assert found["eval_f1"] >= 0.99
    assert found["eval_f1_PER"] >= 0.98 and found["eval_f1_LOC"] >= 0.98
    assert 0 < found["eval_loss"] < 0.1
    report = json.loads((run / "eval_report.json").read_text())
    words = [y for some in labels_of(run.parent / "eval.txt") for y in some]
    supports = {k: x["support"] for k, x in report["per_class"].items()}
    assert supports == {y: words.count(y) for y in report["labels"]}
    matrix = np.array(report["confusion_matrix"])
    assert matrix.sum() == len(words)
    assert found["eval_accuracy"] == matrix.trace() / len(words)
    wrong = len(words) - matrix.trace()
    assert len(report["worst_errors"]) == min(20, wrong)
    majority = report["references"]["eval_accuracy/majority"]
    assert majority == words.count("O") / len(words)


def test_names_in_checkpoints_and_what_is_not_trained(run):
    (index,) = run.glob("model.ckpt-*.index")
    values = tensor_files.read(str(index.with_suffix("")))
    assert values["cls/ner/output_weights"].shape == (5, 24)
    assert "cls/ner/output_bias/adam_v" in values
    assert "bert/pooler/dense/kernel" in values
    assert "bert/pooler/dense/kernel/adam_m" not in values
    assert json.loads((run / "task.json").read_text()) == {
        "labels": ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"],
        "kind": "entities",
        "max_seq_length": 19,
        "doc_stride": 0,
        "document_context": True,
    }


def test_other_labels_count_as_wrong(run, run_script, tmp_path):
    names.write(tmp_path / "odd.txt", [[("anna", "B-MISC"), ("then", "O")]])
    flags = trained.flags_of(
        run.parent,
        "names",
        do_train=False,
        do_predict=None,
        output_dir=tmp_path / "again",
        init_checkpoint=run,
        eval_file=tmp_path / "odd.txt",
    )
    code, _, err = run_script(run_ner, **flags)
    assert code == 0, err
    message = "labels that are not in the training data count as errors: B-MISC"
    assert message in err
    found = run_folders.results(tmp_path / "again")
    assert found["eval_recall_MISC"] == found["eval_precision"] == 0.0
    assert found["global_step"] == 0  # a run of its own, not trained


def test_a_new_head_starts_from_the_outputs_of_the_encoder(
    run, run_script, tmp_path
):
    written = conll.read(str(run.parent / "eval.txt"), conll.Columns())
    people = [
        [
            (w, "O" if y.endswith("LOC") else y)
            for w, y in zip(x.words, x.labels)
        ]
        for x in written
    ]
    names.write(tmp_path / "people.txt", people)
    flags = trained.flags_of(
        run.parent,
        "names",
        do_predict=None,
        output_dir=tmp_path / "people",
        init_checkpoint=run,
        train_file=tmp_path / "people.txt",
        eval_file=tmp_path / "people.txt",
        num_train_epochs=1,
    )
    code, out, err = run_script(run_ner, **flags)
    assert code == 0, err
    assert "3 labels, 2 x 24: head from frozen features, 1 epoch (" in err
    report = json.loads((tmp_path / "people/eval_report.json").read_text())
    found = {k for k in report["references"] if k.endswith("/frozen")}
    assert found == {f"eval_{x}/frozen" for x in ("accuracy", "f1", "loss")}
    assert report["references"]["eval_f1/frozen"] > 0.9
    assert report["metrics"]["eval_f1"] > 0.9
