"""run_swag on choices that can be learned."""

import json

import numpy as np
import pytest

import run_swag
from bert.common.formats import tensor_files
from bert.inference.predictor import Predictor
from tests.helpers import model_files, run_folders
from tests.helpers.swag_files import (
    VOCABULARY,
    S,
    flags_of,
    rows,
    write_csv,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with the files, after training and all else."""
    folder = tmp_path_factory.mktemp("swag")
    model_files.write_sizes(
        folder,
        "config.json",
        VOCABULARY,
        hidden_size=24,
        num_attention_heads=3,
        intermediate_size=37,
        max_position_embeddings=S,
    )
    write_csv(folder / "train.csv", 997, 1)
    write_csv(folder / "val.csv", 199, 2)
    write_csv(folder / "test.csv", 61, 3, labelled=False)
    run_swag.main(
        [
            "run_swag.py",
            "--do_train",
            "--do_eval",
            "--do_predict",
            *flags_of(
                folder,
                train_file=folder / "train.csv",
                eval_file=folder / "val.csv",
                predict_file=folder / "test.csv",
                num_train_epochs=6,
                learning_rate=4e-3,
                eval_steps=97,
            ),
        ]
    )
    return folder


def test_choices_are_learned(trained):
    found = run_folders.results(trained / "run")
    assert set(found) == {"eval_accuracy", "eval_loss", "global_step"}
    assert found["eval_accuracy"] >= 0.95
    report = json.loads((trained / "run" / "eval_report.json").read_text())
    wrong = report["worst_errors"]
    errors = round(199 * (1 - found["eval_accuracy"]))
    assert len(wrong) == min(20, errors)
    assert 0 < report["references"]["eval_accuracy/chance"] <= 0.5
    for error in wrong:
        assert {error["label"], error["predicted"]} < set(error["text"][1:])
    assert found["global_step"] in (97, 997 * 6 // 31)  # the best
    (index,) = (trained / "run" / "best").glob("*.index")
    values = tensor_files.read(str(index.with_suffix("")))
    assert values["cls/swag/output_weights"].shape == (1, 24)
    assert "cls/swag/output_bias" not in values


def predictions(path):
    lines = [x.split("\t") for x in path.read_text().splitlines()]
    return [(int(best), [float(x) for x in more]) for best, *more in lines]


def test_predictions_are_in_the_order_of_the_file(trained):
    found = predictions(trained / "run" / "predictions.tsv")
    labels = [label for *_, label in rows(61, 3)]
    assert sum(a == b for (a, _), b in zip(found, labels, strict=True)) >= 58
    for best, probabilities in found:
        assert len(probabilities) == 4
        assert best == int(np.argmax(probabilities))
        assert sum(probabilities) == pytest.approx(1, abs=1e-5)


def test_any_number_of_choices_in_a_file(trained, run_script):
    """A row's answer does not depend on how many choices others have."""
    made = [*rows(5, 7, 2), *rows(5, 11, 5), *rows(3, 13, 3)]
    examples = [
        {"context": x, "choices": [f"It {choice}" for choice in y], "label": z}
        for x, y, z in made
    ]
    path = trained / "some.jsonl"
    path.write_text("".join(f"{json.dumps(x)}\n" for x in examples))
    run = trained / "again"
    code, _, err = run_script(
        run_swag,
        "--do_eval",
        "--do_predict",
        *flags_of(
            trained,
            output_dir=run,
            init_checkpoint=trained / "run" / "best",
            eval_file=path,
            predict_file=path,
        ),
    )
    assert code == 0, err
    assert run_folders.results(run)["eval_accuracy"] >= 12 / 13
    expected = Predictor.open(str(trained / "run" / "best"), "keras")(examples)
    for (best, chances), wanted in zip(
        predictions(run / "predictions.tsv"), expected, strict=True
    ):
        assert best == wanted["best"]
        np.testing.assert_allclose(chances, wanted["probabilities"], atol=1e-5)
