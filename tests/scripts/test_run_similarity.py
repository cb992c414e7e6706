"""run_similarity on pairs that can be learned, and what it exports."""

import json

import numpy as np
import pytest

import bert
import run_similarity
from bert.modeling.formats import sentence_files
from bert.modeling.formats.sentence_files import PoolingConfig
from tests.helpers import (
    run_folders,
    small,
    trained,
)

pytestmark = pytest.mark.slow
PAIRS = {
    "the cat": "a tree",
    "a bird": "the house",
    "the river": "a stone",
    "a dog": "the fish",
    "the tree": "the bird finds",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model with a prompt; pairs of both kinds."""
    folder = tmp_path_factory.mktemp("similarity")
    trained.write_model(folder)
    said = PoolingConfig("cls", False, {"query": "a "}, "query")
    sentence_files.write(str(folder), said, small.H, trained.POSITIONS)
    rows = [
        f"{a} {word},{other} {word},{5 * (a == b)}"
        for word in ("sees", "finds", "likes")
        for a in PAIRS
        for b, other in PAIRS.items()
    ]
    for name, chosen in {
        "scored": ["text,text_b,score", *rows],
        "belongs": ["text,text_b", *(x[:-2] for x in rows if x[-1] == "5")],
    }.items():
        (folder / f"{name}.csv").write_text("\n".join(chosen) + "\n")
    return folder


@pytest.fixture(scope="module")
def flags_of(folder):
    def flags_of(name, output, **changed):
        files = ("train_file", "eval_file", "predict_file")
        return {
            **dict.fromkeys(files, folder / f"{name}.csv"),
            "vocab_file": folder / "vocab.txt",
            "bert_config_file": folder / "bert_config.json",
            "init_checkpoint": folder / "bert_model.ckpt",
            "max_seq_length": trained.POSITIONS,
            "train_batch_size": 13,
            "learning_rate": 0.003,
            "output_dir": output,
            **changed,
        }

    return flags_of


def test_pairs_with_scores_are_learned_and_exported(
    folder, flags_of, run_script, tmp_path
):
    flags = flags_of(
        "scored",
        tmp_path / "run",
        num_train_epochs=17,
        eval_steps=61,
        learning_rate=0.001,
        pooling="mean",
        export_dir=tmp_path / "export",
        export_openvino="float32",
    )
    steps = ("--do_train", "--do_eval", "--do_predict")
    code, out, err = run_script(run_similarity, *steps, **flags)
    assert code == 0, err
    results = run_folders.results(tmp_path / "run")
    names = {"eval_pearson_cosine", "eval_spearman_cosine", "global_step"}
    assert {*results} == names
    report = json.loads((tmp_path / "run" / "eval_report.json").read_text())
    references = report["references"]
    before = references["eval_pearson_cosine/before"]
    assert results["eval_pearson_cosine"] > before + 0.2
    assert (
        f"(word_overlap {references['eval_pearson_cosine/word_overlap']:.6f}"
        in out
    )

    # The predictions and the export are from the best weights.
    lines = (folder / "scored.csv").read_text().splitlines()[1:]
    texts = [line.split(",")[:2] for line in lines]
    predicted = np.loadtxt(tmp_path / "run" / "predictions.tsv")
    for model in ("run/best", "export"):
        first, second = (bert.embed(x, tmp_path / model) for x in zip(*texts))
        cosines = (first * second).sum(-1)
        np.testing.assert_allclose(cosines, predicted, atol=1e-5)
    assert predicted.std() > 0.1  # else their correlation is only rounding
    scores = (tmp_path / "export/assets.extra/metrics.json").read_text()
    assert json.loads(scores)["openvino_pearson_cosine"] == pytest.approx(
        results["eval_pearson_cosine"], abs=1e-4
    )


@pytest.mark.usefixtures("eagerly")
def test_texts_that_belong_together_find_each_other(
    flags_of, run_script, tmp_path
):
    flags = flags_of("belongs", tmp_path / "run", loss="ranking")
    flags |= {"num_train_epochs": 17, "train_batch_size": 5, "pooling": "mean"}
    steps = ("--do_train", "--do_eval")
    code, _, err = run_script(run_similarity, *steps, **flags)
    assert code == 0, err
    score = run_folders.results(tmp_path / "run")["eval_cosine_mrr@10"]
    report = json.loads((tmp_path / "run" / "eval_report.json").read_text())
    before = report["references"]["eval_cosine_mrr@10/before"]
    assert score > max(0.5, before)
