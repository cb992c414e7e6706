"""The task and the objective that run_similarity.py trains."""

import types

import pytest

from bert.data.pooling import PoolingConfig
from bert.runs import objectives
from bert.tasks.similarity import inputs
from bert.tasks.similarity.settings import Settings
from bert.training.optimization import WarmupLinearDecay
from tests.helpers import run_folders, small


@pytest.mark.parametrize(
    ("loss", "compares_rows"),
    [("cosent", True), ("ranking", True), ("cosine", False)],
)
def test_losses_that_compare_all_rows_of_a_batch(loss, compares_rows, tmp_path):
    """Else gradient accumulation would compare fewer rows."""
    table = tmp_path / "table.csv"
    table.write_text("text,text_b,score\nthe cat,a dog,0.5\na,b,0.1\n")
    named = {"train_file": table, "init_checkpoint": "x", "loss": loss}
    settings = run_folders.parse(Settings, "--do_train", **named)
    model = types.SimpleNamespace(
        tokenizer=run_folders.MODEL.tokenizer,
        pooling_config=PoolingConfig("cls", truncate_dim=5),
    )
    task, _ = inputs.read(run_folders.made(settings, model=model))
    objective = objectives.objective_of(
        task, small.config(), settings, WarmupLinearDecay(0.1, 7, 2)
    )
    assert objective.losses[0].compares_rows == compares_rows
    assert (
        task.pooling_config.truncate_dim,
        task.pooling_config.normalize,
    ) == (5, True)
