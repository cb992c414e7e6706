import numpy as np
import pytest

from tasks.classification import answers
from tasks.classification.examples import (
    CLASSES,
    MULTI_LABEL,
    REGRESSION,
    Labels,
    TextExample,
)

THREE = Labels(CLASSES, ("a", "b", "c"))
SEVERAL = Labels(MULTI_LABEL, ("x", "y", "z"), separator=";")
NUMBER = Labels(REGRESSION)
LOGITS = np.log(np.array([[1, 2, 5], [4, 2, 2]], np.float32))


def test_the_originals_file_has_only_probabilities(tmp_path):
    path = tmp_path / "test_results.tsv"
    answers.write_test_results(str(path), LOGITS, THREE)
    lines = path.read_text().split("\n")
    assert lines.pop() == ""
    found = [[float(x) for x in line.split("\t")] for line in lines]
    expected = [[0.125, 0.25, 0.625], [0.5, 0.25, 0.25]]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_predictions_have_ids_and_names(tmp_path):
    path = tmp_path / "predictions.tsv"
    rows = [
        TextExample("q7", "one", "two", None),
        TextExample("a\tb\nc", "three\tfour\r\n", "", None),
    ]
    answers.write_predictions(str(path), rows, LOGITS, THREE, has_pairs=True)
    assert path.read_text() == (
        "id\tlabel\ta\tb\tc\ttext\ttext_b\n"
        "q7\tc\t0.125000\t0.250000\t0.625000\tone\ttwo\n"
        "a\\tb\\nc\ta\t0.500000\t0.250000\t0.250000\t"
        "three\\tfour\\r\\n\t\n"
    )
    with pytest.raises(ValueError, match="argument 2 is longer"):
        answers.write_predictions(str(path), rows[:1], LOGITS, THREE)


def test_several_labels_and_none(tmp_path):
    logits = np.array([[0.0, -3.0, 2.0], [-1.0, -1.0, -1.0]], np.float32)
    assert answers.names_of(logits, SEVERAL) == ["x;z", ""]


def test_numbers_are_clipped_to_the_range_of_glue(tmp_path):
    logits = np.array([[3.14159], [7.0], [-1.0]], np.float32)
    assert answers.names_of(logits, NUMBER) == ["3.142", "7.000", "-1.000"]
    path = answers.write_submission(
        str(tmp_path / "glue"), "STS-B", ["0", "1", "2"], logits, NUMBER
    )
    assert path == f"{tmp_path}/glue/STS-B.tsv"
    with open(path) as file:
        assert (
            file.read() == "index\tprediction\n0\t3.142\n1\t5.000\n2\t0.000\n"
        )
    rows = [TextExample(key, f"text {key}", "", None) for key in "abc"]
    answers.write_predictions(f"{tmp_path}/p.tsv", rows, logits, NUMBER)
    assert (tmp_path / "p.tsv").read_text() == (
        "id\tlabel\ttext\na\t3.142\ttext a\nb\t7.000\ttext b\n"
        "c\t-1.000\ttext c\n"
    )
