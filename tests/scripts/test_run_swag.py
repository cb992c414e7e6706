"""run_swag on choices that can be learned."""

import json

import numpy as np
import pytest

import run_swag
from bert.common.formats import tensor_files
from bert.inference.predictor import Predictor
from tests.helpers import run_folders, trained
from tests.helpers.swag_files import rows

pytestmark = pytest.mark.slow


@pytest.fixture
def run(tmp_path_factory):
    """The folder after training and all else."""
    return trained.folder(tmp_path_factory, "likes").run


def test_choices_are_learned(run):
    found = run_folders.results(run)
    assert set(found) == {"eval_accuracy", "eval_loss", "global_step"}
    assert found["eval_accuracy"] >= 0.95
    report = json.loads((run / "eval_report.json").read_text())
    wrong = report["worst_errors"]
    errors = round(199 * (1 - found["eval_accuracy"]))
    assert len(wrong) == min(20, errors)
    assert 0 < report["references"]["eval_accuracy/chance"] <= 0.5
    for error in wrong:
        assert {error["label"], error["predicted"]} < set(error["text"][1:])
    assert found["global_step"] in (97, 997 * 6 // 31)  # the best
    (index,) = (run / "best").glob("*.index")
    values = tensor_files.read(str(index.with_suffix("")))
    assert values["cls/swag/output_weights"].shape == (1, 24)
    assert "cls/swag/output_bias" not in values


def predictions(path):
    lines = [x.split("\t") for x in path.read_text().splitlines()]
    return [(int(best), [float(x) for x in more]) for best, *more in lines]


def test_predictions_are_in_the_order_of_the_file(run):
    found = predictions(run / "predictions.tsv")
    labels = [label for *_, label in rows(61, 3)]
    assert sum(a == b for (a, _), b in zip(found, labels, strict=True)) >= 58
    for best, probabilities in found:
        assert len(probabilities) == 4
        assert best == int(np.argmax(probabilities))
        assert sum(probabilities) == pytest.approx(1, abs=1e-5)


def test_any_number_of_choices_in_a_file(run, run_script, tmp_path):
    """A row's answer does not depend on how many choices others have."""
    made = [*rows(5, 7, 2), *rows(5, 11, 5), *rows(3, 13, 3)]
    examples = [
        {"context": x, "choices": [f"It {choice}" for choice in y], "label": z}
        for x, y, z in made
    ]
    path = tmp_path / "some.jsonl"
    path.write_text("".join(f"{json.dumps(x)}\n" for x in examples))
    flags = trained.flags_of(
        run.parent,
        "likes",
        do_train=False,
        eval_steps=None,
        output_dir=tmp_path / "again",
        init_checkpoint=run / "best",
        eval_file=path,
        predict_file=path,
    )
    code, _, err = run_script(run_swag, **flags)
    assert code == 0, err
    results = run_folders.results(tmp_path / "again")
    assert results["eval_accuracy"] >= 12 / 13
    expected = Predictor.open(str(run / "best"), "keras")(examples)
    for (best, chances), wanted in zip(
        predictions(tmp_path / "again/predictions.tsv"), expected, strict=True
    ):
        assert best == wanted["best"]
        np.testing.assert_allclose(chances, wanted["probabilities"], atol=1e-5)
