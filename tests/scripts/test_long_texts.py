"""run_classifier with long texts in windows; test_entry_points.py: answers."""

import json
import shutil

import numpy as np
import pytest

import run_classifier
from bert.modeling.engines.keras_engine import KerasEngine
from tests.helpers import trained

FITS = [*trained.TEXTS[:3], "", "the house near the river"]


@pytest.fixture
def run(tmp_path_factory, tmp_path):
    """A copy of a run that truncates long texts."""
    made = trained.folder(tmp_path_factory, "labels").run
    return shutil.copytree(made, tmp_path / "run")


@pytest.fixture
def answer(run, run_script, tmp_path):
    """Evaluates and predicts; returns the predictions, and standard error."""

    def answer(texts, **named):
        rows = [
            {"text": x, "label": trained.LABELS[i % 3]}
            for i, x in enumerate(texts)
        ]
        path = tmp_path / "dev.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        words = ("--do_eval", "--do_predict", "--task_name=jsonl")
        files = {"eval_file": path, "predict_file": path, "output_dir": run}
        code, _, err = run_script(run_classifier, *words, **files, **named)
        assert code == 0, err
        return (run / "test_results.tsv").read_bytes(), err

    return answer


@pytest.mark.slow
def test_texts_that_fit_are_in_the_same_batches_with_the_same_answers(
    run, answer, monkeypatch
):
    call, seen = KerasEngine.__call__, []
    monkeypatch.setattr(
        KerasEngine,
        "__call__",
        lambda self, batch: seen[-1].append(batch) or call(self, batch),
    )
    results = []
    for how in ("truncate", "windows"):
        seen.append([])
        results.append(answer(FITS, long_texts=how)[0])
    assert results[0] == results[1]
    before, now = seen
    for one, other in zip(before, now, strict=True):
        for name in one:
            np.testing.assert_array_equal(one[name], other[name])
    task = json.loads((run / "task.json").read_text())
    stride = (trained.S - 2) * 3 // 4
    assert task["windows"] == {"pool": "mean", "stride": stride}


@pytest.mark.slow
def test_later_commands_read_the_windows_from_the_folder(run, answer):
    texts = [*FITS, trained.LONG]
    expected, err = answer(texts, long_texts="windows")
    assert f"1 of {len(texts)} texts are longer than {trained.S} tokens" in err
    assert answer(texts)[0] == expected
    assert answer(texts, long_texts="truncate")[0] != expected
    assert "windows" not in (run / "task.json").read_text()
