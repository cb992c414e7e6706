"""Counts of a partition, and warnings about them."""

import dataclasses
import json

import numpy as np
import pytest

from bert.common.jobs import runners
from bert.data.pretraining import instances, partitions
from bert.data.pretraining.settings import InstanceSettings
from bert.data.records import shuffle
from bert.data.text.tokenizer import Tokenizer
from tests.helpers import text

SETTINGS = InstanceSettings(max_seq_length=31, max_predictions_per_seq=5)
GOOD = {
    "documents": 10,
    "sentences": 100,
    "tokens": 2000,
    "unknown_tokens": 4,
    "instances": 50,
    "records": 50,
    "random_next": 26,
    "row_tokens": 1400,
    "predictions": 200,
    "predictions_masked": 160,
    "predictions_random": 20,
    "continued_lines": 3,
}


@pytest.fixture
def job(tmp_path):
    text.write_vocabulary(tmp_path / "vocab.txt")
    tokenizer = Tokenizer(str(tmp_path / "vocab.txt"))
    return partitions.Job(
        str(tmp_path),
        {"": ["corpus.txt"]},
        [f"{i}.tfrecord" for i in range(3)],
        tokenizer,
        SETTINGS,
        64,
    )


def test_documents_become_flat_arrays(job):
    """Sentences and documents without tokens are dropped."""
    texts = [["the cat", "\u200b", "dogs"], ["\u200d"], ["xyz", "a ."]]
    found = job.tokenize(texts)
    ids = [text.VOCABULARY.index(x) for x in "the cat dog ##s".split()]
    unknown, *others = [text.VOCABULARY.index(x) for x in ("[UNK]", "a", ".")]
    assert found.ids.tolist() == [*ids, unknown, *others]
    assert found.sentence_ends.tolist() == [2, 4, 5, 7]
    assert found.document_ends.tolist() == [2, 4]
    assert job.count_documents(found, texts) == {
        "documents": 2,
        "sentences": 4,
        "tokens": 7,
        "unknown_tokens": 1,
        "continued_lines": 1,
    }


def test_lines_that_continue_the_one_before():
    """Not after the end of a sentence, nor in another document."""
    wrapped = [
        "It was",
        "the best of times,",
        "it was the",
        "worst. In 1859",
        "he ran.",
    ]
    whole = ["it was .", "the best", "\u6211\u4eec", "\u4f7f\u7528"]
    assert partitions.count_continued([wrapped, ["on"], whole]) == 4


def test_marked_ids_of_unknown_words_are_counted(job):
    size, unknown = len(text.VOCABULARY), text.VOCABULARY.index("[UNK]")
    ids = np.array([unknown, unknown + size, 7, 7 + size], np.int32)
    found = instances.TokenizedDocuments(ids, np.array([2, 4]), np.array([2]))
    assert job.count_documents(found, [])["unknown_tokens"] == 2


def test_each_section_of_a_part_has_a_file(job, tmp_path, monkeypatch):
    monkeypatch.setattr(partitions, "_SECTION_BYTES", 1)  # each pass is one
    content = b"the cat sees a dog .\na fish .\n\nold stone .\na .\n\n"
    (tmp_path / "texts").mkdir()
    with open(tmp_path / "texts" / "0.0", "wb") as file:
        shuffle.write_portions(file, [b"", content])
    runners.write_record(job.plan_path, {"texts": {"": ["0.0"]}})
    keys, distribute = [], shuffle.distribute
    monkeypatch.setattr(
        shuffle,
        "distribute",
        lambda records, shards, key: (
            keys.append(key) or distribute(records, shards, key)
        ),
    )
    job.make_part(partitions.Partition(5, "", 1, 2.5))
    assert len({*keys}) == 3  # each section has an order of its own
    names = ["part-00005.0", "part-00005.1", "part-00005.2", "part-00005.json"]
    left = sorted(path.name for path in tmp_path.glob("part-*"))
    assert left == names
    first, *others = json.loads((tmp_path / names[-1]).read_text())["value"][
        "counts"
    ]
    assert first["documents"] == 2
    assert all("documents" not in x for x in others)
    runners.write_record(job.sections_path, [0] * 5 + [3])
    assert sum(job.write_shard(i)[0] for i in range(3)) == sum(
        x["records"] for x in [first, *others]
    )


def test_the_last_pass_uses_a_fraction_of_the_documents(job):
    texts = [["the cat sees a dog .", "a fish ."]] * 97
    counts = {}
    for passes in (1.0, 1.25, 2.0):
        partition = partitions.Partition(5, "", 5, passes)
        sections = job.make_sections(texts, partition)
        counts[passes] = sum(x["instances"] for _, x in sections)
    share = (counts[1.25] - counts[1.0]) / (counts[2.0] - counts[1.0])
    assert 0.1 < share < 0.4


def test_fractions():
    assert partitions.fractions(GOOD, 31) == pytest.approx(
        {
            "unknown": 0.002,
            "fill": 1400 / (50 * 31),
            "predicted": 1 / 7,
            "masked": 0.8,
            "random": 0.1,
            "random_next": 0.52,
            "continued": 0.03,
        }
    )


def test_a_good_corpus_has_no_warning():
    assert partitions.warnings(GOOD, SETTINGS) == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"unknown_tokens": 21}, "1.1% of the tokens are [UNK]"),
        ({"documents": 60}, "1.7 lines per document: the corpus needs one"),
        ({"random_next": 40}, "80% of the pairs are random (usual: 70%): the "),
        (
            {"continued_lines": 26},
            "26% of the lines continue the previous line: ",
        ),
        (
            {"continued_lines": 26, "row_tokens": 770, "predictions": 110},
            "26% of the lines continue the previous line: ",
        ),
        ({"row_tokens": 770, "predictions": 110}, "the records are 50% full"),
        ({"predictions": 160}, "11.4% of the tokens are predicted"),
    ],
)
def test_warnings(changed, message):
    (line,) = partitions.warnings({**GOOD, **changed}, SETTINGS)
    assert line.startswith(message)


@pytest.mark.parametrize(
    ("length", "short", "measured", "of_paragraphs"),
    [
        (32, 0.1, 0.735, 0.99),
        (32, 0.3, 0.766, 0.99),
        (64, 0.1, 0.581, 0.968),
        (64, 0.3, 0.624, 0.971),
        (128, 0.1, 0.566, 0.767),
        (512, 0.1, 0.592, 0.723),
    ],
)
def test_short_sequences_have_more_random_pairs(
    length, short, measured, of_paragraphs
):
    """Shares of English Wikipedia by sentences, and by paragraphs of four."""
    settings = InstanceSettings(max_seq_length=length, short_seq_prob=short)
    for share, expected in ((measured, 0), (of_paragraphs, 1)):
        counts = {**GOOD, "random_next": 50 * share}
        lines = partitions.warnings(counts, settings)
        assert sum("pairs are random" in line for line in lines) == expected
    usual = partitions.usual_random_next(settings)
    assert usual == pytest.approx(measured, abs=0.06)


def test_packed_records_that_are_half_empty_need_more_predictions():
    packed = dataclasses.replace(SETTINGS, pack_sequences=True)
    half = {**GOOD, "row_tokens": 770, "predictions": 110}
    (line,) = partitions.warnings(half, packed)
    assert line.endswith("or a larger --max_predictions_per_seq wastes less")
