"""Later commands: a run without flags predicts and scores as its training.

run -> script without flags -> the same files
run -> predict.py -> scikit-learn, the official formulas -> eval_results.txt
run -> class.evaluate -> eval_results.txt
"""

import json
import pathlib
import re
import shutil

import numpy as np
import pytest
from sklearn import metrics

import bert
import predict
from bert.common import flags as flags_lib
from bert.tasks.ner import entities
from bert.tasks.ner import metrics as ner_metrics
from tests.helpers import run_folders, trained

pytestmark = pytest.mark.slow
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
# Key of trained.TASKS -> the flags of files and tables of a later command.
KEYS = {
    "labels": ("task_name",),
    "several": ("task_name", "multi_label"),
    "numbers": ("task_name", "regression"),
    "pairs": ("task_name", "text_column", "text_b_column"),
    "windows": ("task_name", "multi_label"),
    "questions": (),
    "alignment": (),
    "words": (),
    "documents": (),
    "choices": (),
    "vectors": ("text_columns",),
}


@pytest.fixture
def later(tmp_path, tmp_path_factory, run_script):
    """Predicts and evaluates with a copy of a run; returns its folder."""

    def later(name: str) -> tuple[pathlib.Path, pathlib.Path]:
        made = trained.folder(tmp_path_factory, name)
        run = shutil.copytree(made.run, tmp_path / "run")
        for path in (*run.glob("*predictions*"), *run.glob("test_results*")):
            path.unlink()
        script, named, _ = trained.TASKS[name]
        flags = {key: named[key] for key in KEYS[name]}
        words = ["--do_predict", "--noreport"]
        for key in ("eval_file", "predict_file"):
            if key in named:
                flags[key] = made.run.parent / named[key]
        if named.get("do_eval"):
            words.append("--do_eval")
        code, _, err = run_script(script, *words, **flags, output_dir=run)
        assert code == 0, err
        return run, made.run

    return later


@pytest.mark.parametrize("name", KEYS)
def test_a_later_run_without_flags_predicts_the_same(name, later):
    """Every flag that predictions depend on is recorded and restored."""
    run, before = later(name)
    files = [*before.glob("*predictions*"), *before.glob("null_odds.json")]
    assert files
    for file in files:
        texts = [path.read_text() for path in (file, run / file.name)]
        # The last digits may differ between two runs.
        words = [NUMBER.sub("", text) for text in texts]
        assert words[0] == words[1]
        first, second = ([*map(float, NUMBER.findall(x))] for x in texts)
        assert second == pytest.approx(first, rel=1e-5, abs=2e-6)


@pytest.mark.parametrize(
    ("script", "names"),
    [
        ("run_squad", ("questions", "alignment")),
        ("run_ner", ("documents",)),
        ("run_swag", ("choices",)),
    ],
)
def test_each_recorded_flag_has_another_value_in_a_run(
    script, names, tmp_path_factory
):
    """So that the test above fails for a flag that is not restored."""
    settings = trained.TASKS[names[0]][0].Settings()
    recorded = {
        x.name for x in flags_lib.flags_of(type(settings)) if x.recorded
    }
    changed = set()
    for name in names:
        path = trained.folder(tmp_path_factory, name).run / "task.json"
        task = json.loads(path.read_text())
        changed |= {x for x in recorded if task[x] != getattr(settings, x)}
    assert changed == recorded


def printed(run_script, folder, name, examples, path) -> list[dict]:
    """What predict.py prints."""
    path.write_text("".join(f"{json.dumps(x)}\n" for x in examples))
    code, out, err = run_script(predict, model=folder, input_file=path)
    assert code == 0, err
    return [json.loads(line) for line in out.split("\n")[:-1]]


@pytest.mark.parametrize("name", ["labels", "several", "numbers", "windows"])
def test_scores_of_texts(name, later, run_script, tmp_path):
    run, before = later(name)
    rows = [
        json.loads(line)
        for line in (before.parent / "train.jsonl").read_text().splitlines()
    ]
    texts, gold = ([x[key] for x in rows] for key in ("text", "label"))
    asked = [{"text": x} for x in texts]
    shown = printed(run_script, run, name, asked, tmp_path / "asked.jsonl")
    expected = {}
    if name == "numbers":
        found = [x["value"] for x in shown]
        expected["mae"] = metrics.mean_absolute_error(gold, found)
        expected["loss"] = metrics.mean_squared_error(gold, found)
    else:
        names = [*shown[0]["probabilities"]]
        chances = np.array([[*x["probabilities"].values()] for x in shown])
    if name == "labels":  # a rejected text counts as its most probable class
        found = [names[i] for i in chances.argmax(-1)]
        expected["accuracy"] = metrics.accuracy_score(gold, found)
        expected["macro_f1"] = metrics.f1_score(gold, found, average="macro")
        order = np.argsort(names)
        scaled = chances[:, order] / chances.sum(-1, keepdims=True)
        ordered = sorted(names)
        expected["loss"] = metrics.log_loss(gold, scaled, labels=ordered)
    elif name != "numbers":
        bits, found = (
            np.array([[label in x for label in names] for x in labels], int)
            for labels in (gold, [x["label"] for x in shown])
        )
        expected["accuracy"] = metrics.accuracy_score(bits, found)
        expected["micro_f1"] = metrics.f1_score(bits, found, average="micro")
        expected["loss"] = metrics.log_loss(
            bits.ravel(), chances.ravel(), labels=[0, 1]
        )

    curves = (before / "metrics.jsonl").read_text()
    assert ("accuracy" in curves) == (name != "numbers")
    script = run_folders.results(run)
    model = bert.TextClassifier(run)
    of_class = model.evaluate(texts, gold, verbose=0, return_dict=True)
    for key, value in expected.items():
        assert script[f"eval_{key}"] == pytest.approx(value, abs=5e-6), key
        assert of_class[key] == pytest.approx(script[f"eval_{key}"], abs=1e-6)
    assert {f"eval_{x}" for x in of_class} == {*script} - {
        "global_step",
        "loss",
    }


def test_scores_of_answers(later):
    run, before = later("questions")
    asked = json.loads((before.parent / "asked.json").read_text())
    columns, answers = ([], []), []
    for article in asked["data"]:
        for paragraph in article["paragraphs"]:
            for qa in paragraph["qas"]:
                columns[0].append(qa["question"])
                columns[1].append(paragraph["context"])
                answers.append([x["text"] for x in qa["answers"]])
    found = bert.QuestionAnswerer(run).evaluate(columns, answers)
    script = run_folders.results(run)
    assert found == pytest.approx(
        {x: script[x] for x in {*script} - {"global_step"}}, abs=1e-4
    )


def test_scores_of_words(later):
    run, _ = later("words")
    model = bert.TokenClassifier(run)
    found = model.evaluate(trained.SENTENCES, trained.TAGS)
    labels = model.predict(trained.SENTENCES, verbose=0)["labels"]
    gold = [entities.to_bio(x) for x in trained.TAGS]
    for key, value in ner_metrics.score_entities(gold, labels).items():
        assert found[key] == pytest.approx(value)
    script = run_folders.results(run)
    assert {f"eval_{k}": x for k, x in found.items()} == pytest.approx(
        {x: script[x] for x in {*script} - {"global_step"}}, abs=1e-6
    )
