"""Training data that a resumed run must have again."""

import json
import random

import pytest

import run_classifier
import run_ner
import run_squad
import run_swag
from tests.helpers import names, small, squad_files, swag_files

S = 17


@pytest.fixture
def folder(tmp_path):
    """Files of three tasks."""
    tokens = dict.fromkeys([*names.vocabulary(), *swag_files.VOCABULARY])
    (tmp_path / "vocab.txt").write_text("".join(f"{x}\n" for x in tokens))
    config = small.config(vocab_size=len(tokens), max_position_embeddings=S)
    (tmp_path / "config.json").write_text(config.to_json())
    rng = random.Random(1)
    sentences = [names.sentence(rng, rng.randint(1, 9)) for _ in range(61)]
    names.write(tmp_path / "train.txt", sentences)
    swag_files.write_csv(tmp_path / "train.csv", 61, 1)
    return tmp_path


def write_run(run):
    """Writes as much of a run as tells its training data."""
    run.mkdir(parents=True)
    (run / "checkpoint").touch()
    (run / "model.ckpt-7.index").touch()
    described = json.dumps({"settings": {"records": "61 examples of 0a7f"}})
    (run / "model.ckpt-7.json").write_text(described)


@pytest.mark.parametrize(
    ("script", "name", "changed"),
    [
        (run_ner, "train.txt", {}),
        (run_squad, "train.json", {"max_query_length": 7, "doc_stride": 5}),
        (run_swag, "train.csv", {}),
    ],
)
def test_a_folder_with_other_training_data_is_left_as_it_is(
    folder, run_script, script, name, changed
):
    """`test_run_classifier.py` trains, and begins again."""
    run = folder / "run"
    write_run(run)
    before = sorted(run.iterdir())
    squad_files.write(folder / "train.json", 7, 1, version_2=False)
    flags_of_run = swag_files.flags_of(
        folder, train_file=folder / name, **changed
    )
    code, _, err = run_script(script, "--do_train", *flags_of_run)
    assert code == 2
    assert err.endswith(
        f"error: {run}: holds a run with other training data; pass another "
        f"--output_dir, with --init_checkpoint={run} to start from its "
        "weights\n"
    )
    assert sorted(run.iterdir()) == before


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("", {"eval_fraction": 0.3}),
        ("fold_1", {"num_folds": 2}),
        ("seed_12345", {"num_seeds": 2, "eval_fraction": 0.3}),
    ],
)
def test_weights_that_may_have_seen_held_out_rows_are_not_advised(
    folder, run_script, name, changed
):
    """The other division had other rows for training."""
    rows = [f"the boat {x},{'yn'[x % 2]}" for x in range(99)]
    (folder / "train.csv").write_text("\n".join(["text,label", *rows]))
    run = folder / "run" / name
    write_run(run)
    flags_of_run = swag_files.flags_of(
        folder, task_name="csv", train_file=folder / "train.csv", **changed
    )
    code, _, err = run_script(
        run_classifier, "--do_train", "--do_eval", *flags_of_run
    )
    assert code == 2
    assert err.endswith("other training data; pass another --output_dir\n")
