"""Records in which nothing counts, and ids that no vocabulary has."""

import pytest

from bert.checks import records
from bert.checks.record_statistics import Counter
from tests.helpers import pretraining_files, small


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("predictions", "no token is masked"),
        ("row_tokens", "input_mask is 0 everywhere"),
        ("instances", "next_sentence_weights is 0 everywhere"),
    ],
)
def test_records_in_which_nothing_counts(name, message):
    counter = Counter(small.V)
    counter.counts.update(predictions=1, row_tokens=1, instances=1)
    counter.counts[name] = 0
    (found,) = records._judge(records.Scan(), counter, "a")
    expected = f"a: {message}; make the records again"
    assert (found.level, found.message) == ("wrong", expected)


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (34, "34% of the pairs are random (usual: "),
        (36, None),
        (99, "99% of the pairs are random (usual: "),
    ],
)
def test_few_or_many_random_pairs(count, message):
    counter = Counter(small.V)
    names = ("predictions", "row_tokens", "instances", "records")
    counter.counts.update(dict.fromkeys(names, 100), random_next=count)
    for name in ("unknown_tokens", "predictions_masked", "predictions_random"):
        counter.counts[name] = 0
    found = records._judge(records.Scan(max_seq_length=100), counter, "a")
    lines = [x for x in found if "are random" in x.message]
    if message is None:
        assert lines == []
        return
    (line,) = lines
    assert line.level == "suspicious"
    assert line.message.startswith(f"a: {message}")


def test_a_manifest_that_counts_no_sentence_is_not_divided_by(tmp_path):
    path = tmp_path / "a.tfrecord"
    statistics = {"documents": 3, "sentences": 0}
    pretraining_files.write_records(path, 5, statistics=statistics)
    found = records.scan(str(path), None, None).findings
    assert any("5 records, 5 pairs" in x.message for x in found)


def test_records_with_the_same_problem_are_counted(tmp_path):
    path = tmp_path / "a.tfrecord"
    for rows, end in ((1, ("", "")), (2, (" (", "and 1 more records)"))):
        pretraining_files.write_records(path, rows)
        found = records.scan(str(path), None, None).findings
        (line,) = (x.message for x in found if "start with [CLS]" in x.message)
        assert line.startswith(f"{path}: record 0: input_ids do not start")
        assert line.partition(";")[0].partition(" (")[1:] == end


def test_ids_are_below_the_size_of_the_config(tmp_path):
    path = tmp_path / "a.tfrecord"
    pretraining_files.write_records(path, 5)
    below, found = (records.scan(str(path), None, x) for x in (small.V, 7))
    messages = {x.message for x in found.findings if x.level == "wrong"}
    assert messages - {x.message for x in below.findings}
