"""The task and the objective that run_similarity.py trains."""

import pytest

import run_similarity
from bert.data.pooling import PoolingConfig
from bert.modeling.formats import sentence_files
from bert.reports import drawing
from bert.runs import finetuning, objectives
from bert.training.optimization import WarmupLinearDecay
from tests.helpers import classifier_files, small


@pytest.mark.parametrize(
    ("loss", "compares_rows"),
    [("cosent", True), ("ranking", True), ("cosine", False)],
)
def test_losses_that_compare_all_rows_of_a_batch(
    loss, compares_rows, tmp_path, monkeypatch
):
    """Else gradient accumulation would compare fewer rows."""
    classifier_files.write_model(tmp_path)
    how = PoolingConfig("cls", truncate_dim=5)
    sentence_files.write(str(tmp_path), how, small.H, small.POSITIONS)
    table = tmp_path / "table.csv"
    table.write_text("text,text_b,score\nthe cat,a dog,0.5\na,b,0.1\n")
    runs = []
    monkeypatch.setattr(
        finetuning, "train_and_evaluate", lambda *x: runs.append(x)
    )
    monkeypatch.setattr(drawing, "draw_trained", lambda *x: None)
    flags = {
        "train_file": table,
        "init_checkpoint": tmp_path / "bert_model.ckpt",
        "output_dir": tmp_path / "run",
        "max_seq_length": small.POSITIONS,
        "train_batch_size": 2,
        "loss": loss,
    }
    argv = [f"--{name}={value}" for name, value in flags.items()]
    run_similarity.main(["", "--do_train", *argv])
    ((folder, task, _),) = runs
    objective = objectives.objective_of(
        task, folder.config, folder.settings, WarmupLinearDecay(0.1, 7, 2)
    )
    assert objective.compares_rows == compares_rows
    assert (
        task.pooling_config.truncate_dim,
        task.pooling_config.normalize,
    ) == (5, True)
