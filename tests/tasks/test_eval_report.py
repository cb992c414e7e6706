import json
import math

import numpy as np
import pytest

from bert.runs import written_files
from bert.tasks import class_report, eval_report, evaluation
from bert.tasks import metrics as metrics_lib
from bert.tasks.ner import conll
from bert.tasks.ner.task import TokenClassification
from bert.tasks.run import OutputFolder
from bert.tasks.swag.examples import ChoiceExample
from bert.tasks.swag.task import MultipleChoice
from tests.helpers import run_folders

GOLD = [0, 0, 0, 1, 1, 2]
FOUND = [0, 0, 1, 1, 0, 0]
NAMES = ["cat", "dog", "fish"]


def test_classes_are_compared():
    report = class_report.of_classes(GOLD, FOUND, NAMES)
    assert report["labels"] == NAMES
    assert report["confusion_matrix"] == [[2, 1, 0], [1, 1, 0], [1, 0, 0]]
    assert report["per_class"]["cat"] == {
        "precision": 0.5,
        "recall": pytest.approx(2 / 3),
        "f1": pytest.approx(4 / 7),
        "support": 3,
    }
    assert report["per_class"]["fish"]["precision"] == 0.0
    json.dumps(report)


def test_a_matrix_of_very_many_classes_is_left_out():
    names = [f"label {i}" for i in range(201)]
    report = class_report.of_classes(GOLD, FOUND, names)
    assert "confusion_matrix" not in report and len(report["per_class"]) == 201


def test_one_label_that_may_be_missing_has_the_scores_of_its_own():
    gold, found = np.array([[1], [0], [1], [1]]), np.array([[1], [1], [0], [1]])
    (scores,) = class_report.per_class(gold, found, ["cat"]).values()
    expected = {"precision": 2 / 3, "recall": 2 / 3, "f1": 2 / 3, "support": 3}
    assert scores == pytest.approx(expected)


def test_references_are_those_of_the_shares_of_the_training_labels():
    found = evaluation.baselines_of_classes(GOLD, [1] * 5 + [0, 2] * 2, 3)
    counts = [2, 5, 2]
    assert found == {
        "accuracy/majority": 2 / 6,
        "accuracy/chance": 1 / 3,
        "loss/frequencies": pytest.approx(
            -sum(math.log(counts[label] / 9) for label in GOLD) / 6
        ),
        "loss/chance": math.log(3),
    }
    # A label that training lacks has no probability.
    found = evaluation.baselines_of_classes([*GOLD, 3], GOLD, 3)
    assert found["accuracy/majority"] == 3 / 7
    assert "loss/frequencies" not in found


def test_the_worst_errors_are_the_surest():
    errors = [{"text": i, "probability": (7 * i % 29) / 29} for i in range(29)]
    found = evaluation.worst(errors)
    sure = [error["probability"] for error in found]
    assert sure == [i / 29 for i in range(28, 8, -1)]


def test_the_worst_errors_name_their_lines():
    tokenizer = run_folders.MODEL.tokenizer
    choices = ChoiceExample("context", ["a", "b"], 1, 7)
    sentence = conll.Sentence(["one", "two"], ["A", "B"], [5, 6], 0)
    words = TokenClassification(tokenizer, ["A", "B"], False, 7)
    for task, row, result, line in (
        (MultipleChoice(tokenizer, 7), choices, [0.75, 0.25], 7),
        (words, sentence, [[2, 1], [2, 1]], 6),
    ):
        encoded = task.encode(task.inputs_of([row]))
        report = task.score([row], encoded, [np.array(result)]).report
        assert [error["line"] for error in report["worst_errors"]] == [line]


@pytest.mark.parametrize(
    ("found", "gold", "warned"),
    [
        (["dog"] * 3, ["cat"] * 3, "all 3 predictions are 'dog'"),
        (["dog"] * 3, ["dog"] * 3, "all 3 predictions are 'dog'"),
        (["dog", "dog", "cat"], ["cat"] * 3, ""),
        (["dog"], ["cat"], ""),
        (
            [["cat", "dog"]] * 3,
            [[]] * 3,
            "all 3 predictions are ['cat', 'dog']",
        ),
        ([[]] * 3, [["cat"]] * 3, "all 3 predictions are []"),
        # Nearly all, but few of the labels.
        (
            ["dog"] * 994 + ["cat"] * 6,
            ["dog"] * 690 + ["cat"] * 310,
            "994 of 1,000 predictions are 'dog'",
        ),
        (["dog"] * 994 + ["cat"] * 6, ["dog"] * 995 + ["cat"] * 5, ""),
        (["dog"] * 98 + ["cat"] * 2, ["cat"] * 100, ""),
    ],
)
def test_one_answer_to_everything_is_reported(found, gold, warned):
    lines = evaluation.one_prediction_warnings(found, gold)
    remedy = "; train for more steps"
    assert lines == [f"{warned}{remedy}"] * bool(warned)


@pytest.mark.parametrize("name", metrics_lib.METRICS)
def test_a_metric_has_its_sign_with_any_prefix(name):
    """A sweep and a baseline compare `eval_loss`."""
    sign = -1 if name in ("loss", "mae") else 1
    for prefix in ("", "eval_"):
        assert metrics_lib.sign(prefix + name) == sign


CHECK = "check --learning_rate, the number of steps and the data"
SURE = (
    "its predictions are better, but overconfident: train for fewer epochs or "
    "lower --learning_rate"
)
WORDS = (
    "a linear model of the words is better: train from another "
    "--init_checkpoint"
)
FROZEN = "the encoder was better before its fine-tuning: lower --learning_rate"
PAIRS = (
    "embeddings of the texts were better before training: see "
    "run_similarity.py, or lower --learning_rate"
)
BOTH = "acc 0.400000 (tfidf 0.600000), loss 1.050000 (frequencies 1.000000)"


@pytest.mark.parametrize(
    ("metrics", "warned", "remedy"),
    [
        ({"acc": 0.7, "loss": 0.9}, "", ""),
        ({"acc": 0.6, "loss": 0.9}, "", ""),  # a tie with tfidf
        ({"other": 0.0}, "", ""),
        ({"f1": 0.1}, "f1 0.100000 (chance 0.100000)", CHECK),
        ({"f1": math.nan}, "f1 nan (chance 0.100000)", CHECK),
        ({"acc": 0.55, "loss": 0.9}, "acc 0.550000 (tfidf 0.600000)", WORDS),
        # One remedy, also where several baselines are better.
        ({"acc": 0.5, "loss": 0.9}, "acc 0.500000 (tfidf 0.600000)", CHECK),
        ({"acc": 0.4, "loss": 1.05}, BOTH, CHECK),
        (
            {"acc": 0.4, "f1": 0.0},
            "acc 0.400000 (tfidf 0.600000), f1 0.000000 (chance 0.100000)",
            CHECK,
        ),
        (
            {"acc": 0.7, "loss": 1.05},
            "loss 1.050000 (frequencies 1.000000)",
            SURE,
        ),
        # Hardly better: the model has learned too little.
        (
            {"acc": 0.61, "loss": 1.05},
            "loss 1.050000 (frequencies 1.000000)",
            CHECK,
        ),
        ({"macro": 0.5}, "macro 0.500000 (frozen 0.800000)", FROZEN),
        # A constant is worse, and so is what the network had before.
        ({"spearman": 0.3}, "spearman 0.300000 (cosine 0.800000)", PAIRS),
        ({"mae": 2.1}, "mae 2.100000 (tfidf 2.000000)", WORDS),
        # The squared error of numbers has no confidence.
        (
            {"pearson": 0.9, "eval_loss": 5},
            "eval_loss 5.000000 (majority 3.000000)",
            CHECK,
        ),
    ],
)
def test_a_model_that_is_not_better_is_reported(metrics, warned, remedy):
    references = {
        "acc/majority": 0.5,
        "acc/chance": 0.25,
        "acc/tfidf": 0.6,
        "loss/frequencies": 1.0,
        "loss/chance": 1.1,
        "f1/chance": 0.1,
        "macro/tfidf": 0.6,
        "macro/frozen": 0.8,
        "mae/tfidf": 2.0,
        "pearson/tfidf": 0.5,
        "spearman/tfidf": 0.4,
        "spearman/frozen": 0.5,
        "spearman/cosine": 0.8,
        "eval_loss/majority": 3.0,
    }
    found = eval_report.warning(metrics, references)
    shown = f"not better than a baseline: {warned}"
    assert found == (f"{shown}; {remedy}" if warned else "")
    # The remedy is named once.
    later = eval_report.warning(metrics, references, has_cause=True)
    assert later == (shown if warned else "")


def test_the_file_holds_all_digits_and_the_lines_six(tmp_path, capsys):
    metrics = {"acc": 2 / 3, "total": 7}
    references = {"acc/majority": 0.5, "acc/chance": 1 / 3}
    folder = OutputFolder(str(tmp_path), str(tmp_path))
    report = {"task": "x", "records": "x.tsv", "references": references}
    path, _ = written_files.write_results(folder, 31, metrics, report)
    assert capsys.readouterr().out == (
        "acc = 0.666667 (majority 0.500000, chance 0.333333)\n"
        "global_step = 31\ntotal = 7\n"
    )
    with open(path) as file:
        assert file.read() == f"acc = {2 / 3}\nglobal_step = 31\ntotal = 7\n"


def test_the_report_is_strict_json(tmp_path, capsys):
    report = {"task": "mrpc", "records": "dev.tsv"}
    report["references"] = {"loss/chance": 1.0}
    path = eval_report.write(str(tmp_path), 31, {"loss": math.inf}, report)
    with open(path) as file:
        found = json.load(file)
    warning = capsys.readouterr().err.removeprefix("warning: ").strip()
    report |= {"metrics": {"loss": None}, "step": 31, "warning": warning}
    assert found == report
    assert "loss inf (chance 1.000000)" in warning
