"""Options of create_pretraining_data beyond the original: groups, packing,
spans, words of segmented text.
"""

import json

import pytest
import tensorflow as tf

from bert.data import features
from tests.helpers import text

S, P = 64, 9


@pytest.fixture
def folder(tmp_path):
    text.write_corpus(tmp_path / "corpus.txt", 37)
    text.write_corpus(tmp_path / "small.txt", 5, seed=2)
    text.write_vocabulary(tmp_path / "vocab.txt")
    return tmp_path


@pytest.fixture
def create(folder, create):
    """Runs the script into a folder of its own: (records, run, out, err)."""

    def run(name, *words, code=0, **named):
        named = {"max_seq_length": S, "max_predictions_per_seq": P, **named}
        (file,), out, err = create(name, *words, code=code, **named)
        if code:
            assert not (folder / name).exists()
            return None, None, out, err
        path = folder / name / "_0.manifest.json"
        manifest = json.loads(path.read_text())
        dataset = tf.data.TFRecordDataset(str(file))
        return [r.numpy() for r in dataset], manifest, out, err

    return run


def parse(records, schema):
    parsing = {
        name: tf.io.FixedLenFeature([length], tf.as_dtype(kind))
        for name, (kind, length) in schema.items()
    }
    batch = tf.io.parse_example(records, parsing)
    return {name: values.numpy() for name, values in batch.items()}


def instances(rows):
    """Every instance of packed or plain rows, as it was before masking."""
    found = []
    for row in range(len(rows["input_ids"])):
        ids = rows["input_ids"][row].copy()
        real = rows["masked_lm_weights"][row] > 0
        positions = rows["masked_lm_positions"][row][real]
        ids[positions] = rows["masked_lm_ids"][row][real]
        numbers = rows.get("sequence_ids", rows["input_mask"])[row]
        for number in range(1, numbers.max() + 1):
            here = numbers == number
            found.append(
                (
                    tuple(ids[here]),
                    tuple(rows["segment_ids"][row][here]),
                    int(rows["next_sentence_labels"][row][number - 1]),
                    int(here[positions].sum()),
                )
            )
    return sorted(found)


def test_packed_rows_hold_the_instances_of_plain_ones(create):
    records, _, _, _ = create("plain")
    plain = parse(records, features.pretraining_schema(S, P))
    records, run, out, _ = create("packed", "--pack_sequences")
    k = run["max_sequences_per_row"]
    packed = parse(records, features.packed_schema(S, P, k))
    assert instances(packed) == instances(plain)
    assert len(records) < len(plain["input_ids"])
    assert run["statistics"]["instances"] == len(plain["input_ids"])
    assert run["shares"]["fill"] == packed["input_mask"].mean()
    assert f"in {len(records)} rows, {run['shares']['fill']:.1%} full" in out
    assert out.endswith(
        f"wrote {len(records)} records to " + out.split()[-1] + "\n"
    )
    # [CLS] stands where a sequence starts.
    rows, slots = packed["next_sentence_weights"].nonzero()
    starts = packed["next_sentence_positions"][rows, slots]
    cls = text.VOCABULARY.index("[CLS]")
    assert (packed["input_ids"][rows, starts] == cls).all()
    assert (packed["position_ids"][rows, starts] == 0).all()


def test_small_groups_count_for_more(create, folder):
    names = f"big={folder}/corpus.txt,little={folder}/small.txt"
    records, run, out, _ = create("out", input_file=names, dupe_factor=20)
    found = run["groups"]
    assert found["little"]["copies"] > 20 > found["big"]["copies"]
    sizes = {name: found[name]["tokens"] for name in found}
    read = {name: sizes[name] * found[name]["copies"] for name in found}
    assert read["big"] / read["little"] == pytest.approx(
        (sizes["big"] / sizes["little"]) ** 0.7, rel=0.05
    )
    counts = {name: found[name]["instances"] for name in found}
    assert sum(counts.values()) == len(records)
    _, run, _, _ = create(
        "even", input_file=names, dupe_factor=20, smoothing=1.0
    )
    for name, even in run["groups"].items():
        assert even["copies"] == 20
        assert counts[name] / even["instances"] == pytest.approx(
            found[name]["copies"] / 20, rel=0.1
        )
    assert out.startswith("big: ")
    assert f"{counts['little'] / len(records):.1%} of the instances" in out


def test_pairs_stay_in_their_language(create, folder):
    """Next sentences of another language would be too easy."""
    (folder / "small.txt").write_text("under over .\nnear under .\n\n" * 7)
    (folder / "corpus.txt").write_text("cat dog .\nbird fish .\n\n" * 31)
    names = f"a={folder}/corpus.txt,b={folder}/small.txt"
    records, _, _, _ = create("out", input_file=names)
    rows = parse(records, features.pretraining_schema(S, P))
    words = [
        {text.VOCABULARY[token] for token in ids} for ids, *_ in instances(rows)
    ]
    assert sum("cat" in w or "bird" in w for w in words) > 10
    for w in words:
        assert not (w & {"cat", "dog", "bird"} and w & {"under", "over"})


def test_one_named_group_is_the_corpus(create, folder):
    plain, _, _, _ = create("plain")
    named, _, _, _ = create("named", input_file=f"en={folder}/corpus.txt")
    assert plain == named


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (
            {"input_file": "en={0}/corpus.txt,{0}/small.txt"},
            "--input_file: '{0}/small.txt' has no name, but others do; "
            "expected name=path for each",
        ),
        (
            {"word_boundaries": "true"},
            "--word_boundaries changes nothing; pass --do_whole_word_mask too",
        ),
    ],
)
def test_wrong_flags_are_reported(create, folder, named, message):
    named = {key: value.format(folder) for key, value in named.items()}
    _, _, _, err = create("out", code=2, **named)
    assert message.format(folder) in err
    assert len(err.splitlines()) == 1


def test_a_group_of_one_document_is_reported(create, folder):
    (folder / "small.txt").write_text("cat .\ndog .\n")
    names = f"a={folder}/corpus.txt,b={folder}/small.txt"
    _, _, _, err = create("out", code=2, input_file=names)
    assert "1 document" in err and "small.txt" in err.splitlines()[-1]
