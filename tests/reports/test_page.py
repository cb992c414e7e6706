"""The page of runs: one file, all of its parts, every text escaped."""

import json
import math
import re

import pytest

from bert.common.errors import UserError
from bert.reports import contents, page, run_files
from tests.helpers import report_files
from tests.helpers.html_page import Page


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    """Text of the page of a run of pre-training and of one of fine-tuning."""
    folder = tmp_path_factory.mktemp("runs")
    folders = [
        report_files.write_run(folder / "first"),
        report_files.write_classifier(folder / "second"),
    ]
    return [page.render(run_files.read_run(str(x))) for x in folders]


def test_a_page_is_one_file_without_scripts(rendered):
    for text in rendered:
        found = Page(text)
        for tag, attributes in found.tags:
            assert tag not in ("script", "link", "img", "iframe", "object")
            for name, value in attributes.items():
                assert not name.startswith("on"), (tag, name)
                if name in ("href", "src", "xlink:href"):
                    assert value.startswith("#"), value
        assert not re.search(r"@import|url\((?!#)", text)
        ids = [a["id"] for _, a in found.tags if "id" in a]
        assert len(set(ids)) == len(ids)


def test_every_text_of_a_user_is_escaped(rendered):
    first, second = map(Page, rendered)
    assert report_files.EVIL in first.texts  # a setting
    assert "run.py \\ --x='<i>'" in first.texts
    assert report_files.EVIL in second.texts  # of the worst errors
    assert second.texts.count("dog & <b>") >= 4
    for found in (first, second):
        assert not {"script", "i"} & {tag for tag, _ in found.tags}


def test_pretraining_has_curves_with_references_and_data(rendered):
    found = Page(rendered[0])
    assert found.headings == [
        "Results",
        "Curves",
        "Data",
        "Settings",
    ]
    assert found.count("svg") == found.count("figure") == 9
    text = " ".join(found.texts)
    assert "chance, ln 8,009 8.988" in text
    assert "chance, ln 2 0.6931" in text
    assert "training 8.4 held out 8.65" in text
    assert "40,009" in text and "777" not in text  # of other records
    assert "[UNK] of all tokens 1.23%" in text
    assert "at step 30 loss 9.35" in text  # of the evaluation
    assert "Step 30 of 30" in text and "tensorflow 2.21.0" in text


def test_fine_tuning_has_its_errors(rendered):
    found = Page(rendered[1])
    assert found.headings == ["Results", "Curves", "Data", "Errors", "Settings"]
    assert found.count("svg") == 3  # loss, accuracy and learning rate
    text = " ".join(found.texts)
    assert "training 0.75 held out 0.71 majority 0.4211" in text
    assert "eval accuracy 0.71 – majority 0.4211 eval loss 0.83" in text
    assert "Warning: no better than <b>: eval_loss Curves" in text
    assert "cat dog & <b> bird cat 11 2 0 dog & <b> 3 13 1 bird 0 0 17" in text
    assert "cat 0.5 0.25 0.3333 11" in text
    # The run went on after the evaluation.
    assert "evaluated dev & <b>.tsv at step 20, now 30 eval accuracy" in text
    error = "one and two n7 is cat , predicted – with a probability of 0.987"
    assert error in text
    right = [a for tag, a in found.tags if a.get("class") == "number right"]
    assert [a["style"] for a in right] == [
        "--share: 38.1%",
        "--share: 34.4%",
        "--share: 45.0%",
    ]


def test_manifests_that_are_not_ours_are_ignored(tmp_path):
    folder = report_files.write_run(tmp_path / "run")
    before = run_files.read_run(str(folder))
    for number, text in enumerate(
        ("[]", '{"a": 1}\n{"a": 2}', '{"runs": [1]}', '{"shards": [{}]}')
    ):
        (folder / f"{number}.manifest.json").write_text(text)
    assert run_files.read_run(str(folder)) == before


def test_a_run_that_has_only_begun_has_a_page(tmp_path):
    folder = report_files.write_run(tmp_path / "run")
    for path in folder.iterdir():
        if path.name != "metrics.jsonl":
            path.unlink()
    lines = (folder / "metrics.jsonl").read_text().splitlines(True)
    (folder / "metrics.jsonl").write_text(lines[0] + '{"step": 20, "ki')
    found = Page(page.render(run_files.read_run(str(folder))))
    assert found.headings == ["Curves", "Settings"]
    assert found.count("svg") == 7  # no throughput yet


def test_the_manifest_of_the_records_is_read(tmp_path):
    folder = report_files.write_run(tmp_path / "run")
    (manifest,) = folder.glob("_a.manifest.json")
    run = run_files.read_run(str(folder))
    assert run.records == [json.loads(manifest.read_text())]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("metrics.jsonl", "[]\n", r"metrics.jsonl:1: not a point"),
        ("eval_report.json", "[1]", r"eval_report.json: Expected `object`"),
        ("eval_results.txt", "a = b\n", r"eval_results.txt:1: 'a = b'; exp"),
    ],
)
def test_a_damaged_file_is_named(tmp_path, name, content, message):
    folder = report_files.write_run(tmp_path / "run")
    (folder / name).write_text(content)
    with pytest.raises(UserError, match=message):
        run_files.read_run(str(folder))


def test_references_of_an_evaluation_replace_the_own_ones(tmp_path):
    folder = report_files.write_run(tmp_path / "run")
    references = {
        "masked_lm_loss/chance": 8.5,
        "masked_lm_loss/unigrams": 7.25,
        "next_sentence_accuracy/majority": 0.59,
    }
    report = json.dumps({"references": references})
    (folder / "eval_report.json").write_text(report)
    run = run_files.read_run(str(folder))
    found = {figure.title: figure.references for figure in contents.curves(run)}
    assert found["Masked LM: loss"] == [("chance", 8.5), ("unigrams", 7.25)]
    assert found["Masked LM: accuracy"] == []
    assert found["Next sentence: accuracy"] == [("majority", 0.59)]
    assert found["Next sentence: loss"] == [("chance, ln 2", math.log(2))]
