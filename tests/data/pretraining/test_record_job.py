"""Parts of a partition: tokenized documents, sections, counts."""

import json

import numpy as np
import pytest

from bert.common.jobs import runners
from bert.data.pretraining import instances, record_job
from bert.data.pretraining.settings import InstanceSettings
from bert.data.records import shuffle
from bert.data.text.tokenizer import Tokenizer
from tests.helpers import text

SETTINGS = InstanceSettings(max_seq_length=31, max_predictions_per_seq=5)


@pytest.fixture
def job(tmp_path):
    text.write_vocabulary(tmp_path / "vocab.txt")
    tokenizer = Tokenizer(str(tmp_path / "vocab.txt"))
    return record_job.Job(
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
    assert record_job.count_continued([wrapped, ["on"], whole]) == 4


def test_marked_ids_of_unknown_words_are_counted(job):
    size, unknown = len(text.VOCABULARY), text.VOCABULARY.index("[UNK]")
    ids = np.array([unknown, unknown + size, 7, 7 + size], np.int32)
    found = instances.TokenizedDocuments(ids, np.array([2, 4]), np.array([2]))
    assert job.count_documents(found, [])["unknown_tokens"] == 2


def test_each_section_of_a_part_has_a_file(job, tmp_path, monkeypatch):
    monkeypatch.setattr(record_job, "_SECTION_BYTES", 1)  # each pass is one
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
    job.make_part(record_job.Partition(5, "", 1, 2.5))
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
        partition = record_job.Partition(5, "", 5, passes)
        sections = job.make_sections(texts, partition)
        counts[passes] = sum(x["instances"] for _, x in sections)
    share = (counts[1.25] - counts[1.0]) / (counts[2.0] - counts[1.0])
    assert 0.1 < share < 0.4
