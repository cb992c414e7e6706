"""Training data that a resumed run must have again."""

import json
import random

import pytest

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
    run.mkdir()
    (run / "checkpoint").touch()
    (run / "model.ckpt-7.index").touch()
    described = json.dumps({"settings": {"records": "61 examples of 0a7f"}})
    (run / "model.ckpt-7.json").write_text(described)
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
