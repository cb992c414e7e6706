"""doctor on the folder of a run: files, settings, curves."""

import json
import math

import pytest

from bert.modeling import models
from bert.training import saver
from tests.helpers import model_files, small, text

pytestmark = pytest.mark.slow

V = len(text.VOCABULARY)


@pytest.fixture(scope="module")
def values():
    """The variables of a fresh network."""
    model = models.build_pretraining_model(small.config(vocab_size=V), seed=7)
    return model_files.values_of(model)


@pytest.fixture
def run_folder(tmp_path, values):
    """A run of two checkpoints and its curves."""
    folder = tmp_path / "run"
    folder.mkdir()
    model_files.write_sizes(folder)
    settings = {
        "num_train_steps": 7,
        "num_warmup_steps": 2,
        "learning_rate": 1e-3,
        "do_lower_case": True,
        "strip_accents": True,
    }
    for step in (3, 7):
        saver.Saver(str(folder)).save(step, values, settings)
    write_curves(folder, 1.0)
    return folder


def write_curves(folder, last_norm):
    points = [
        {
            "step": step,
            "kind": "train",
            "masked_lm_loss": math.log(V) - step / 100,
            "next_sentence_loss": 0.69,
            "gradient_norm": last_norm if step == 7 else 1.0,
            "learning_rate": 5e-4,
        }
        for step in range(1, 8)
    ]
    lines = "".join(json.dumps(point) + "\n" for point in points)
    (folder / "metrics.jsonl").write_text(lines)


def test_a_healthy_run_raises_nothing(diagnose, run_folder):
    code, found = diagnose(output_dir=run_folder)
    assert (code, found["wrong"], found["suspicious"]) == (0, [], [])
    fine = "\n".join(found["fine"])
    assert f"{run_folder}: whole checkpoints: 3, 7" in fine
    assert f"{run_folder}/model.ckpt-7: " in fine
    assert f"{run_folder}/metrics.jsonl: step 7, next_sentence_loss " in fine
