"""The page of runs: one file, all of its parts, every text escaped."""

import re

import pytest

from bert.common.errors import UserError, printable
from bert.reports import page, run_files
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
    evil = printable(report_files.EVIL)
    assert evil in first.texts  # a setting
    assert "run.py \\ --x='<i>'" in first.texts
    assert evil in second.texts  # of the worst errors
    assert second.texts.count("dog & <b>") >= 3
    for found in (first, second):
        assert not {"script", "i"} & {tag for tag, _ in found.tags}


def test_pretraining_has_curves_with_references(rendered):
    found = Page(rendered[0])
    assert found.headings == ["Results", "Curves", "Settings"]
    assert found.count("svg") == found.count("figure") == 9
    text = " ".join(found.texts)
    assert "chance, ln 8,009 8.988" in text
    assert "chance, ln 2 0.6931" in text
    assert "training 8.4 held out 8.65" in text
    assert "at step 30 loss 9.35 Mean error" in text  # of the evaluation
    assert "Fraction of the masked tokens that are predicted correctly." in text
    assert "Step 30 of 30" in text and "tensorflow 2.21.0" in text


def test_flags_have_their_current_names(tmp_path):
    folder = report_files.write_classifier(tmp_path / "run", eval_share=0.25)
    settings = run_files.read_run(str(folder)).settings
    assert settings == {"num_train_epochs": 2.0, "eval_fraction": 0.25}


def test_a_damaged_line_of_results_is_named(tmp_path):
    folder = report_files.write_run(tmp_path / "run")
    (folder / "eval_results.txt").write_text("loss = 1.0\nrows = x\n")
    with pytest.raises(UserError, match=r"eval_results.txt:2: 'rows = x'; exp"):
        run_files.read_run(str(folder))


@pytest.mark.parametrize("value", [True, None, "1", float("nan"), float("inf")])
def test_values_that_are_no_numbers(value):
    assert run_files.is_number(0) and run_files.is_number(-0.5)
    assert not run_files.is_number(value)


def test_fine_tuning_has_its_errors(rendered):
    found = Page(rendered[1])
    assert found.headings == ["Results", "Curves", "Errors", "Settings"]
    assert found.count("svg") == 3  # loss, accuracy and learning rate
    text = " ".join(found.texts)
    assert "training 0.75 held out 0.71 majority 0.4211" in text
    for row in (
        "eval accuracy 0.71 Fraction of correct predictions.",
        "– majority 0.4211 Baseline: predict the most frequent label.",
    ):
        assert row in text
    assert "Warning: no better than <b>: eval_loss Curves" in text
    assert "cat dog & <b> bird cat 11 2 0 dog & <b> 3 13 1 bird 0 0 17" in text
    assert "cat 0.5 0.25 0.3333 11" in text
    # The run went on after the evaluation.
    assert "evaluated dev & <b>.tsv at step 20, now 30 eval accuracy" in text
    assert "one and two n7 , line 5: is cat , predicted – with a" in text
    right = [a for tag, a in found.tags if a.get("class") == "number right"]
    assert [a["style"] for a in right] == [
        "--share: 38.1%",
        "--share: 34.4%",
        "--share: 45.0%",
    ]
