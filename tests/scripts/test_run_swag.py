"""run_swag on choices that can be learned."""

import json

import pytest

from bert.common.formats import tensor_files
from tests.helpers import run_folders, trained

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
