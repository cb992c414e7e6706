"""README.md of a model, as Hugging Face's own library reads it."""

import json

import huggingface_hub
import hypothesis
import pytest
from hypothesis import strategies as st

from bert.modeling.formats import model_card
from bert.modeling.formats.model_card import CardFlags, Scores


def read(folder):
    return huggingface_hub.ModelCard.load(folder / model_card.README)


def written(folder, name="cats", base=None, scores=None, told=None):
    model_card.write(
        str(folder),
        name,
        "transformers",
        "text-classification",
        told or CardFlags(),
        base,
        scores,
    )
    return read(folder)


@pytest.mark.parametrize(
    "base",
    [
        "hf://google-bert/bert-base-uncased@v1",
        "/hub/models--google-bert--bert-base-uncased/snapshots/86b5",  # a run
    ],
)
def test_hugging_face_reads_what_the_run_and_the_user_tell(tmp_path, base):
    metrics = {"eval_matthews": 0.123456, "loss": 0.00001, "eval_f1": None}
    metrics |= {x: float(x) for x in ("inf", "-inf", "nan")}
    scores = Scores("cola", "/secret/folder/dev.tsv", metrics, 5)
    told = CardFlags(card_license="mit", card_language=("en", "no"))
    card = written(tmp_path, base=base, scores=scores, told=told)
    data = card.data.to_dict()
    (model,) = data.pop("model-index")
    assert data == {
        "base_model": "google-bert/bert-base-uncased",
        "library_name": "transformers",
        "pipeline_tag": "text-classification",
        "language": ["en", "no"],
        "license": "mit",
        "tags": ["bert"],
    }
    assert model == {
        "name": "cats",
        "results": [
            {
                "task": {"type": "text-classification"},
                "dataset": {"type": "cola", "name": "dev.tsv"},
                "metrics": [
                    {"type": "matthews_correlation", "value": 0.1235},
                    {"type": "loss", "value": 0.0},
                ],
            }
        ],
    }
    assert "# `cats`" in card.text and "| `loss` | 0.0 |" in card.text
    assert "scores are those of the machine that wrote this mod" in card.text
    assert "secret" not in card.content

    # Without what is unknown: no path of a machine is a base model.
    for base in (None, "some/folder", "/models/google"):
        card = written(tmp_path, base=base)
        assert card.data.to_dict() == {
            "library_name": "transformers",
            "pipeline_tag": "text-classification",
            "tags": ["bert"],
        }


def test_a_part_of_a_file_is_not_named_as_the_whole(tmp_path):
    scores = Scores("tsv", "a/mails.csv", {"eval_f1": 0.5}, 5, "9 of its rows")
    card = written(tmp_path, scores=scores)
    (model,) = card.data.to_dict()["model-index"]
    name = model["results"][0]["dataset"]["name"]
    assert name == "mails.csv, 9 of its rows"
    assert f"Measured on `{name}`:" in card.text


@hypothesis.given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="@/"))
)
@hypothesis.example("a 'b' \"c\": {d}")
@hypothesis.example("eval_")
@hypothesis.example("---\nlicense: mit\n---")
@hypothesis.example("# !!python: system\n- [x]: &a *a")
@hypothesis.example("\x85\u2028\x7f\ufeff\t\\u00e9\r\n")
def test_names_stay_inside_their_strings(tmp_path_factory, name):
    name += "."
    scores = Scores(name, f"{name}.tsv", {name: 0.5}, 5)
    folder = tmp_path_factory.mktemp("card")
    card = written(folder, name, f"hf://{name}", scores, CardFlags(name))
    assert (card.data.license, card.data.base_model) == (name, name)
    (model,) = card.data.to_dict()["model-index"]
    (result,) = model["results"]
    assert (model["name"], result["dataset"]["type"]) == (name, name)
    metrics = [x["type"] for x in result["metrics"]]
    assert metrics == [name.removeprefix("eval_")]
    assert not any(x.startswith("---") for x in card.text.splitlines())


def test_scores_of_other_weights_are_not_read(tmp_path):
    path, values = tmp_path / model_card.REPORT, {"eval_f1": 0.5, "x": None}
    content = {"task": "a", "records": "b", "metrics": values, "step": 5}
    path.write_text(json.dumps(content | {"labels": []}))
    assert model_card.read_scores(str(tmp_path), 5).metrics == values
    assert model_card.read_scores(str(tmp_path), 3) is None
    assert model_card.read_scores(str(tmp_path), 7) is None
    assert model_card.read_scores(str(tmp_path / "none"), 0) is None


@pytest.mark.parametrize(
    ("names", "has_vectors", "task"),
    [
        (["cls/ner/output_weights"], False, "token-classification"),
        (["cls/predictions/output_bias"], False, "fill-mask"),
        (["cls/predictions/output_bias"], True, "sentence-similarity"),
        (["bert/pooler/dense/kernel"], False, "feature-extraction"),
        (["output_weights"], False, "text-classification"),
        (
            ["cls/predictions/output_bias", "cls/squad/output_weights"],
            False,
            "question-answering",
        ),
    ],
)
def test_the_head_is_the_task(names, has_vectors, task):
    assert model_card.task_of(names, has_vectors) == task
