"""run_pretraining on packed records and with dynamic masking."""

import dataclasses
import shutil

import pytest

import create_pretraining_data
import run_pretraining
from bert.data.pretraining.settings import InstanceSettings
from bert.runs import opening
from bert.tasks.pretraining.settings import Settings
from tests.helpers import pretraining_runs, run_folders, small, text

S, P = 31, 5


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A corpus, a vocabulary and a config."""
    folder = tmp_path_factory.mktemp("records")
    text.write_corpus(folder / "corpus.txt", 23)
    text.write_vocabulary(folder / "vocab.txt")
    config = small.config(
        vocab_size=len(text.VOCABULARY), max_position_embeddings=S
    )
    (folder / "config.json").write_text(config.to_json())
    return folder


@pytest.fixture
def records(made, run_script):
    """Makes records of the corpus, once for each name."""

    def make(name, *words, **named):
        path = made / name / "0.tfrecord"
        if not path.exists():
            code, _, err = run_script(
                create_pretraining_data,
                *words,
                input_file=made / "corpus.txt",
                vocab_file=made / "vocab.txt",
                output_file=path,
                max_seq_length=S,
                max_predictions_per_seq=P,
                dupe_factor=1,
                num_processes=1,
                **named,
            )
            assert code == 0, err
        return path

    return make


@pytest.fixture
def pretrain(made, run_script, tmp_path):
    """Runs four steps on records; returns (losses, error output)."""

    def run(output, path, *words, code=0, **named):
        named = {"input_file": path, "num_train_steps": 4, **named}
        flags = pretraining_runs.flags_of(made, tmp_path / output, **named)
        found, _, err = run_script(
            run_pretraining, "--do_train", *words, **flags
        )
        assert found == code, err
        if code:
            return [], err
        points = run_folders.points(tmp_path / output)
        return [p["loss"].hex() for p in points if p["kind"] == "train"], err

    return run


@pytest.mark.usefixtures("eagerly")
@pytest.mark.slow
def test_packed_records_are_trained_and_evaluated(records, pretrain, tmp_path):
    path = records("packed", "--pack_sequences")
    words = ("--do_eval", "--dynamic_masking")
    curve, _ = pretrain("out", path, *words, eval_input_file=path)
    assert len(curve) == 4
    results = (tmp_path / "out" / "eval_results.txt").read_text()
    assert "next_sentence_loss = " in results


@pytest.mark.long
@pytest.mark.slow
def test_dynamic_masks_change_and_a_resumed_run_draws_the_same(
    records, pretrain, tmp_path
):
    path = records("plain")
    flags = {"num_train_steps": 11, "train_batch_size": 13}  # two epochs
    still, _ = pretrain("still", path, **flags)
    flags["save_checkpoints_steps"] = 7
    straight, _ = pretrain("out", path, "--dynamic_masking", **flags)
    assert len(set(straight) & set(still)) == 0
    shutil.copytree(tmp_path / "out", tmp_path / "killed")
    for file in (tmp_path / "killed").glob("model.ckpt-11*"):
        file.unlink()
    resumed, err = pretrain("killed", path, "--dynamic_masking", **flags)
    assert "resuming from step 7" in err
    assert resumed == straight


def test_records_of_two_folders_may_share_a_vocabulary(made, records):
    train, held_out = records("plain"), records("spans", max_ngram=2)
    settings = dataclasses.replace(
        Settings(),
        bert_config_file=made / "config.json",
        input_file=str(train),
        output_dir="none",
        eval_input_file=str(held_out),
    )
    with opening.open_pretraining(settings) as (_, inputs):
        pass
    assert inputs.held_out.files == [str(held_out)]


def test_masks_are_drawn_as_before_with_the_seed_of_the_run(made, records):
    settings = dataclasses.replace(
        Settings(),
        bert_config_file=made / "config.json",
        input_file=str(records("spans", max_ngram=2)),
        output_dir="none",
        dynamic_masking=True,
        random_seed=7,
    )
    with opening.open_pretraining(settings) as (_, inputs):
        (phase,) = inputs.phases
    expected = InstanceSettings(
        max_predictions_per_seq=P, max_ngram=2, random_seed=7
    )
    assert phase.masks == expected


def test_packed_and_plain_records_do_not_mix(records, pretrain, tmp_path):
    packed, plain = records("packed", "--pack_sequences"), records("plain")
    for named in (
        {"path": f"{packed},{plain}"},
        {"path": packed, "eval_input_file": plain},
        {"path": plain, "eval_input_file": packed},
    ):
        _, err = pretrain("out", code=2, **named)
        assert err.count("\n") == 1
        assert "pack_sequences is" in err
    assert not (tmp_path / "out").exists()


def test_records_are_compared_with_those_that_have_a_manifest(
    records, pretrain, tmp_path
):
    lower, cased = records("plain"), records("cased", "--nodo_lower_case")
    bare = tmp_path / "bare.tfrecord"
    bare.write_bytes(lower.read_bytes())
    _, err = pretrain("out", f"{bare},{lower},{cased}", code=2)
    assert "do_lower_case is" in err


def test_records_that_cannot_be_masked_again(records, pretrain, tmp_path):
    words = records("words", "--do_whole_word_mask", "--word_boundaries")
    spans, plain = records("spans", max_ngram=2), records("plain")
    bare = tmp_path / "bare.tfrecord"
    bare.write_bytes(plain.read_bytes())
    for path, message in (
        (words, f"{words}: --dynamic_masking does not support --w"),
        (bare, f"{bare}: is not in a manifest, which --dynamic"),
        (
            f"{spans},{plain}",
            f"{plain}: max_ngram is 1; expected 2, as in {spans}; --dynamic",
        ),
    ):
        _, err = pretrain(
            "out",
            path,
            "--dynamic_masking",
            code=2,
            max_seq_length=S,
            max_predictions_per_seq=P,
        )
        assert err.startswith(f"error: {message}")
        assert len(err.splitlines()) == 1
    assert not (tmp_path / "out").exists()
