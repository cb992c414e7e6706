"""create_pretraining_data from text to shards."""

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import pytest
import tensorflow as tf

import create_pretraining_data
from bert.data.corpus import documents
from bert.data.pretraining import creation
from tests.helpers import full_disk, text

S, P = 31, 5
BEAM = {"runner": "DirectRunner", "num_processes": None}


@pytest.fixture
def folder(tmp_path):
    text.write_corpus(tmp_path / "corpus.txt", 37)
    text.write_corpus(tmp_path / "small.txt", 5, seed=2)
    text.write_vocabulary(tmp_path / "vocab.txt")
    return tmp_path


@pytest.fixture
def create(folder, run_script):
    """Runs the script on the folder's corpus into a folder of its own."""

    def run(name, *words, code=0, shards=1, options=(), **named):
        files = [folder / name / f"{i}.tfrecord" for i in range(shards)]
        named = {
            "input_file": folder / "corpus.txt",
            "vocab_file": folder / "vocab.txt",
            "output_file": ",".join(map(str, files)),
            "max_seq_length": S,
            "max_predictions_per_seq": P,
            "dupe_factor": 3,
            "num_processes": 1,
            **named,
        }
        named = {key: x for key, x in named.items() if x is not None}
        words += tuple(f"--{key}={value}" for key, value in named.items())
        found, out, err = run_script(create_pretraining_data, *words, *options)
        assert found == code, err
        return files, out, err

    return run


def examples(files):
    records = tf.data.TFRecordDataset([str(file) for file in files])
    return [tf.train.Example.FromString(r.numpy()) for r in records]


def values(example, name):
    feature = example.features.feature[name]
    return list(feature.int64_list.value or feature.float_list.value)


def digests(files):
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files]


def listing(files):
    """The manifest of a run."""
    path = files[0].parent / f"_{files[0].stem}.manifest.json"
    return json.loads(path.read_text())


@pytest.mark.parametrize(
    "options",
    [
        ["--num_processes=3"],
        # On Beam's own runner of this machine; its options follow `--`.
        pytest.param(
            ["--runner=DirectRunner", "--", "--direct_num_workers=1"],
            marks=pytest.mark.slow,
        ),
    ],
    ids=["processes", "Beam"],
)
def test_processes_and_beam_make_the_same_bytes(
    create, folder, monkeypatch, options
):
    monkeypatch.setattr(documents, "PARTITION_BYTES", 7997)
    monkeypatch.setattr(documents, "_HELD_BYTES", 997)
    files = f"{folder}/small.txt,{folder}/corpus.txt"
    here, out, _ = create("here", shards=2, input_file=files)
    assert out.startswith("42 documents")
    there, _, _ = create("there", shards=2, input_file=files, options=options)
    assert digests(here) == digests(there)
    assert listing(here) == listing(there)


@pytest.mark.long
def test_a_mistake_in_a_corpus_is_one_line_from_beam(create, folder):
    (folder / "corpus.txt").write_bytes(b"a\n\nb\n\xff\n")
    _, _, err = create(
        "beam",
        "--runner=DirectRunner",
        code=2,
        options=["--", "--direct_num_workers=1"],
    )
    message = "4: invalid UTF-8 byte 0xff at column 1; "
    assert f"error: {folder}/corpus.txt:{message}" in err


@pytest.mark.parametrize(
    "more",
    [{}, pytest.param(BEAM, marks=pytest.mark.slow)],
    ids=["processes", "Beam"],
)
def test_shards_on_another_file_system(create, monkeypatch, tmp_path, more):
    """TensorFlow's `ram://` stands for `gs://`: the same code serves both."""
    store = f"ram://{len(more)}"
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(documents, "PARTITION_BYTES", 1997)
    here, _, _ = create("here", shards=2)
    source = here[0].parent.parent / "corpus.txt"
    tf.io.gfile.copy(str(source), f"{store}/corpus.txt")
    outputs = [f"{store}/records/{file.name}" for file in here]
    create(
        "there",
        input_file=f"{store}/*.txt",
        output_file=",".join(outputs),
        **more,
    )
    for file, path in zip(here, outputs, strict=True):
        with tf.io.gfile.GFile(path, "rb") as there:
            assert there.read() == file.read_bytes()
    assert sorted(tf.io.gfile.listdir(f"{store}/records")) == sorted(
        p.name for p in here[0].parent.iterdir()
    )
    assert not list(tmp_path.glob("temporary/bert-*"))


def test_the_manifest_describes_the_records(create, folder):
    files, out, _ = create("out", shards=2)
    run = listing(files)
    assert run["max_seq_length"] == S
    assert run["dupe_factor"] == 3
    assert run["random_seed"] == 12345
    assert run["do_lower_case"] is run["strip_accents"] is True
    assert run["vocab_size"] == len(text.VOCABULARY)
    vocab = (folder / "vocab.txt").read_bytes()
    assert run["vocab_sha256"] == hashlib.sha256(vocab).hexdigest()
    assert (folder / "out" / run["vocab_file"]).read_bytes() == vocab
    for file, digest in zip(files, digests(files)):
        shard = run["shards"][file.name]
        assert shard["sha256"] == digest
        assert shard["bytes"] == file.stat().st_size
        assert shard["records"] == len(examples([file]))
    found = examples(files)
    count = run["statistics"]["instances"]
    assert count == len(found)
    tokens = sum(sum(values(x, "input_mask")) for x in found)
    assert run["shares"]["fill"] == pytest.approx(tokens / (count * S))
    assert f"{run['shares']['fill']:.1%} full" in out
    assert out.splitlines()[-1] == (
        f"wrote {count:,} records to {files[0]}, {files[1]}"
    )


def test_words_longer_than_the_masks_are_reported(create, folder):
    """As text without spaces, of which no word can be masked."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = (folder / "vocab.txt").read_text().split()
    words += [*letters, *(f"##{x}" for x in letters)]
    (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(words)) + "\n")
    content = f"{letters[:23]}\n{letters[3:]}\n\n" * 5
    (folder / "corpus.txt").write_text(content)
    flags = {"do_whole_word_mask": True, "short_seq_prob": 0}
    _, _, err = create("out", code=2, max_seq_length=64, **flags)
    assert "error: no token is masked; expected words of fewer tokens" in err
    assert not (folder / "out").exists()


def test_a_corpus_that_looks_wrong_is_reported(create, folder):
    """A blank line after each sentence makes documents of one sentence."""
    lines = (folder / "corpus.txt").read_text().split("\n")
    (folder / "corpus.txt").write_text("\n\n".join(filter(None, lines)))
    _, out, err = create("out")
    warning = "warning: 1.0 lines per document, 100% of the pairs are random "
    assert warning in err and "run prepare_corpus.py first" in err
    assert "100.0% random next" in out


def test_accents_that_are_stripped_are_warned_of(create, folder):
    """Of two languages, only the second has them."""
    hindi = "हिन्दी में\nthe cat .\n\n" * 13
    (folder / "hindi.gz").write_bytes(gzip.compress(hindi.encode()))
    files = f"en={folder}/corpus.txt,hi={folder}/hindi.gz"
    _, _, err = create("out", input_file=files)
    assert err.count("vowel signs") == err.count("--nostrip_acc") == 1


def test_shards_of_another_number_under_a_name(create, folder):
    """The old ones would be read together with the new ones."""
    names = [f"{folder}/out/a-{i:05d}-of-00002" for i in range(2)]
    create("out", output_file=",".join(names))
    _, _, err = create(
        "out", code=2, output_file=f"{folder}/out/a-00000-of-00001"
    )
    assert (
        f"{folder}/out/_a.manifest.json: lists a-00000-of-00002, which "
        "--output_file does not; expected one set of shards with this name; "
        "remove the earlier shards, or choose another name" in err
    )
    create("out", output_file=",".join(names))


def test_a_shard_that_another_manifest_lists(create, folder):
    """That manifest would describe the new records."""
    create("out", output_file=f"{folder}/out/a,{folder}/out/b")
    _, _, err = create("out", code=2, output_file=f"{folder}/out/b")
    assert (
        f"{folder}/out/_a.manifest.json: lists b; expected one manifest for "
        "each shard; remove it, or choose another --output_file" in err
    )


def test_names_that_are_not_utf_8_are_escaped(create, folder):
    path = os.fsdecode(os.fsencode(folder) + b"/caf\xe9.txt")
    shutil.copy(folder / "corpus.txt", path)
    files, _, _ = create("out", input_file=f"{folder}/caf*.txt")
    assert listing(files)["input_files"] == ["caf\\udce9.txt"]
    create("out")  # reads the manifest


def test_a_full_disk_is_reported_and_leaves_the_earlier_output(create, folder):
    """A limit on the size of files stands for a full disk."""
    files, _, _ = create("out")
    before = digests(files)
    kept = sorted(p.name for p in files[0].parent.iterdir())
    limit = files[0].stat().st_size // 2
    with full_disk.files_of_at_most(limit):
        _, _, err = create("out", code=2)
    last = err.splitlines()[-1]
    assert last.startswith(f"error: {files[0].parent}/")
    assert "cannot be written: " in last
    assert re.search(r", [\d.]+ MB free; ", last)
    assert digests(files) == before
    assert sorted(p.name for p in files[0].parent.iterdir()) == kept


def test_no_process_loads_tensorflow(folder):
    for name in ("tensorflow", "tensorflow_text"):
        (folder / f"{name}.py").write_text("raise SystemExit('loaded')")
    done = subprocess.run(
        [
            sys.executable,
            create_pretraining_data.__file__,
            f"--input_file={folder}/corpus.txt",
            f"--vocab_file={folder}/vocab.txt",
            f"--output_file={folder}/0.tfrecord,{folder}/1.tfrecord",
            f"--max_seq_length={S}",
            f"--max_predictions_per_seq={P}",
            "--num_processes=2",
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    assert "loading TensorFlow" not in done.stderr


def test_small_groups_count_for_more(create, folder):
    names = f"big={folder}/corpus.txt,little={folder}/small.txt"
    files, out, _ = create("out", input_file=names, dupe_factor=20)
    groups = listing(files)["groups"]
    big, little = groups["big"], groups["little"]
    assert little["copies"] > 20 > big["copies"]
    ratio = big["tokens"] / little["tokens"]
    assert ratio * big["copies"] / little["copies"] == pytest.approx(
        ratio**0.7, rel=0.05
    )
    count = len(examples(files))
    assert big["instances"] + little["instances"] == count
    assert out.startswith("big: ")
    assert f"{little['instances'] / count:.1%} of the instances" in out
    files, _, _ = create("even", input_file=names, smoothing=1.0)
    copies = [x["copies"] for x in listing(files)["groups"].values()]
    assert copies == pytest.approx([3, 3])


def test_pairs_stay_in_their_language(create, folder):
    """Next sentences of another language would be too easy."""
    (folder / "small.txt").write_text("under over .\nnear under .\n\n" * 7)
    (folder / "corpus.txt").write_text("cat dog .\nbird fish .\n\n" * 31)
    names = f"a={folder}/corpus.txt,b={folder}/small.txt"
    files, _, _ = create("out", input_file=names)
    pairs = [values(x, "input_ids") for x in examples(files)]
    for ids, example in zip(pairs, examples(files)):
        for position, token in zip(
            values(example, "masked_lm_positions"),
            values(example, "masked_lm_ids"),
        ):
            ids[position] = token if position else ids[position]
    pairs = [{text.VOCABULARY[token] for token in ids} for ids in pairs]
    assert sum("cat" in x or "bird" in x for x in pairs) > 10
    for x in pairs:
        assert not (x & {"cat", "dog", "bird"} and x & {"under", "over"})


def test_one_named_group_is_the_corpus(create, folder):
    plain, _, _ = create("plain")
    named, _, _ = create("named", input_file=f"en={folder}/corpus.txt")
    assert digests(plain) == digests(named)


@pytest.mark.parametrize(
    ("given", "name"),
    [("en=1.txt", ""), ("en=*.txt", ""), ("fr=en=1.txt", "fr")],
)
def test_names_of_files_may_have_an_equals_sign(
    tmp_path, monkeypatch, given, name
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "en=1.txt").touch()
    assert creation.list_inputs(given) == {name: ["en=1.txt"]}


def test_fractions_of_a_group_are_those_of_its_instances():
    """A packed record has several instances."""
    counts = {"tokens": 1, "instances": 3, "records": 1}
    totals = {"tokens": 4, "instances": 4, "records": 2}
    assert creation.report_group("en", counts, totals, 2.5) == (
        "en: 25.0% of the tokens, 2.50 passes, 75.0% of the instances"
    )
