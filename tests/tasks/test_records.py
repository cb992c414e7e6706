"""Records of words and of choices, made once."""

import json
import random
import shutil

import numpy as np
import pytest

import run_ner
import run_squad
import run_swag
from bert.common import flags, tensor_files
from bert.data import batching, features
from bert.data.records import example_files
from bert.data.text.tokenizer import Tokenizer
from bert.tasks import records
from bert.tasks.classification.settings import Settings as ClassifierSettings
from bert.tasks.ner import conll, windows
from bert.tasks.ner.settings import Settings as NerSettings
from bert.tasks.squad.settings import Settings as SquadSettings
from bert.tasks.swag import examples as swag
from bert.tasks.swag.settings import Settings as SwagSettings
from tests.helpers import names, small, squad_files, swag_files

S, C = 17, 4
SCRIPTS = {"ner": run_ner, "swag": run_swag}
COUNTS = {"ner": 142, "swag": 61}


@pytest.fixture
def folder(tmp_path):
    """Files of both tasks."""
    tokens = dict.fromkeys([*names.vocabulary(), *swag_files.VOCABULARY])
    (tmp_path / "vocab.txt").write_text("".join(f"{x}\n" for x in tokens))
    config = small.config(vocab_size=len(tokens), max_position_embeddings=S)
    (tmp_path / "config.json").write_text(config.to_json())
    rng = random.Random(1)
    sentences = [names.sentence(rng, rng.randint(1, 9)) for _ in range(61)]
    names.write(tmp_path / "train.txt", sentences)
    swag_files.write_csv(tmp_path / "train.csv", 61, 1)
    return tmp_path


def flags_of(folder, task, **changed):
    train_file = folder / {"ner": "train.txt", "swag": "train.csv"}[task]
    return swag_files.flags_of(folder, train_file=train_file, **changed)


def parse(settings_class, *args):
    return flags.parse(["script", *args], settings_class, "")


def of_ner(folder):
    """Settings, source, examples, their features, schema, choices."""
    settings = parse(NerSettings, *flags_of(folder, "ner"))
    vocab = {
        x: i for i, x in enumerate((folder / "vocab.txt").read_text().split())
    }
    sentences = conll.read(settings.train_file, conll.Columns())
    labels = sorted({y for x in sentences for y in x.labels})
    featurizer = windows.Featurizer(
        lambda word: [vocab.get(x, 1) for x in word[:3]],
        vocab,
        {y: i for i, y in enumerate(labels)},
        S,
    )
    return (
        settings,
        settings.train_file,
        sentences,
        lambda: featurizer.featurize(sentences),
        windows.TRAINING_SCHEMA,
        1,
    )


def of_swag(folder):
    settings = parse(SwagSettings, *flags_of(folder, "swag"))
    choices = swag.read(settings.train_file, True)
    # One choice more than the file has: each example is padded.
    featurizer = swag.Featurizer(
        lambda text: [5 + len(x) for x in text.split()], 2, 3, 4, S, C + 1
    )
    return (
        settings,
        settings.train_file,
        choices,
        lambda: (featurizer.featurize(x) for x in choices),
        swag.training_schema(C + 1),
        C + 1,
    )


@pytest.mark.parametrize("task", [of_ner, of_swag])
def test_batches_are_those_of_the_examples(folder, task):
    settings, source, examples, encode, schema, choices = task(folder)
    path, length = str(folder / "run" / "x"), settings.tuning.max_seq_length
    tokenizer = settings.tuning.text.tokenizer()
    count = records.make(
        settings, path, source, examples, encode, schema, tokenizer, choices
    )
    expected = example_files.Examples(encode(), schema, choices)
    assert count == len(expected) >= 61
    loaded = example_files.load(path, schema, length, choices)
    lengths = [7, 11, length]

    def batches(some):
        made = batching.training_batches(some, lengths, 7, 5, 3)
        return list(made.take(30).as_numpy_iterator())

    np.testing.assert_array_equal(loaded.lengths, expected.lengths)
    for a, b in zip(batches(loaded), batches(expected), strict=True):
        assert set(a) == set(b)
        for feature in a:
            assert a[feature].dtype == b[feature].dtype
            np.testing.assert_array_equal(a[feature], b[feature])


TASKS = (ClassifierSettings, SwagSettings, SquadSettings, NerSettings)


def other(flag):
    """Another value than the default of a flag."""
    if flag.kind is bool:
        return not flag.default
    return 5 if flag.kind is int else "5"


@pytest.mark.parametrize(
    ("settings_class", "change"),
    [
        (x, {one.name: other(one)})
        for x in TASKS
        for one in flags.flags_of(x)
        if one.name in flags.as_dict(x(), "cache_key")
    ]
    + [(SwagSettings, name) for name in ("vocab.txt", "examples")],
    ids=str,
)
def test_records_are_made_again_if_what_they_depend_on_changes(
    folder, settings_class, change
):
    """A flag, the vocabulary, the examples, or a value of the task."""
    made, examples = [], ["one"]

    def encode():
        made.append(len(made))
        return [{features.INPUT_IDS: [5], features.SEGMENT_IDS: [0]}]

    def make(labels=(), casing=(True, None), **changed):
        settings = parse(
            settings_class, *swag_files.flags_of(folder, **changed)
        )
        source, path = folder / "train.csv", folder / "run" / "x"
        records.make(
            settings,
            str(path),
            str(source),
            examples,
            encode,
            {},
            Tokenizer(str(folder / "vocab.txt"), *casing),
            labels=[*labels],
        )
        return len(made)

    assert (make(), make()) == (1, 1)
    if change == "examples":
        examples.append("two")
        change = {}
    if isinstance(change, str):
        with open(folder / change, "a") as file:
            file.write("more\n")
        change = {}
    assert make(**change) == 2
    assert make(labels="a", **change) == 3
    assert make(labels="a", casing=(True, False), **change) == 4
    assert make(labels="a", casing=(False, False), **change) == 5


@pytest.mark.parametrize(
    ("script", "name", "changed"),
    [
        (run_ner, "train.txt", {}),
        (run_squad, "train.json", {"max_query_length": 7, "doc_stride": 5}),
        (run_swag, "train.csv", {}),
    ],
)
def test_a_folder_with_other_training_data_is_left_as_it_is(
    folder, run_script, script, name, changed
):
    """`test_run_classifier.py` trains, and begins again."""
    run = folder / "run"
    run.mkdir()
    (run / "checkpoint").touch()
    (run / "model.ckpt-7.index").touch()
    described = json.dumps({"settings": {"records": "61 examples of 0a7f"}})
    (run / "model.ckpt-7.json").write_text(described)
    before = sorted(run.iterdir())
    squad_files.write(folder / "train.json", 7, 1, version_2=False)
    flags_of_run = swag_files.flags_of(
        folder, train_file=folder / name, **changed
    )
    code, _, err = run_script(script, "--do_train", *flags_of_run)
    assert code == 2
    assert err.endswith(
        f"error: {run}: holds a run with other training data; pass another "
        f"--output_dir, with --init_checkpoint={run} to start from its "
        "weights\n"
    )
    assert sorted(run.iterdir()) == before


@pytest.mark.long
@pytest.mark.parametrize("task", ["swag", "ner"])
def test_records_of_another_run_give_the_same_weights(folder, task, run_script):
    found = []
    for name, start in (("first", "wrote"), ("second", "reusing")):
        run = folder / name
        code, _, err = run_script(
            SCRIPTS[task],
            "--do_train",
            *flags_of(folder, task, output_dir=run, length_buckets=False),
        )
        assert code == 0, err
        assert f"{start} {COUNTS[task]} examples of " in err, err
        (index,) = run.glob("model.ckpt-*.index")
        found.append(tensor_files.read(str(index.with_suffix(""))))
        (folder / "second").mkdir(exist_ok=True)
        for path in folder.glob("first/train.tf_record*"):
            shutil.copy(path, folder / "second" / path.name)
    assert set(found[0]) == set(found[1])
    for name, values in found[0].items():
        np.testing.assert_array_equal(values, found[1][name], name)
