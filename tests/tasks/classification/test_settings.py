"""Settings of run_classifier.py: own tables, several seeds, casing."""

import types

import pytest

from bert.common import flags
from bert.common.errors import UserError
from bert.data.label_kinds import Labels
from bert.data.text.casing import Casing
from bert.modeling.formats.model_folder import ModelFolder
from bert.tasks import starting_model
from bert.tasks.classification import inputs, seeds
from bert.tasks.classification.settings import OwnTables, Settings
from bert.tasks.run_folder import RunFolder
from tests.helpers import small
from tests.helpers import text as texts

OTHER_VALUES = {bool: "true", str: "x", tuple: "a,b", float: 0.25}


def parse(*words):
    given = ("--do_predict", "--task_name=mrpc", "--output_dir=runs", *words)
    return flags.parse(["script", *given], Settings, "")


@pytest.mark.parametrize("one", flags.flags_of(OwnTables), ids=lambda x: x.name)
def test_flags_of_own_tables_are_only_for_own_tables(one):
    with pytest.raises(UserError) as caught:
        parse(f"--{one.name}={OTHER_VALUES[one.kind]}")
    assert str(caught.value) == (
        f"--{one.name} with --task_name=mrpc; expected --task_name=tsv"
    )


@pytest.mark.parametrize("name", ["tsv", "csv", "JSONL", "txt"])
def test_own_tables_have_several_names(name):
    assert parse(f"--task_name={name}", "--text_column=0").task == "tsv"


def test_each_seed_has_its_folder_and_the_other_settings():
    words = ("--do_train", "--do_eval", "--num_seeds=3", "--random_seed=17")
    settings = parse(*words, "--max_seq_length=29")
    found = seeds.settings_of_seeds(settings)
    assert found == [
        flags.replace(
            settings, random_seed=seed, output_dir=f"runs/seed_{seed}"
        )
        for seed in (17, 18, 19)
    ]
    assert found[2].finetuning.max_seq_length == 29


def test_the_time_of_a_run_is_that_of_all_seeds(monkeypatch, tmp_path):
    now, seconds = [0.0], []

    def work(settings, *_):
        seconds.append(settings.finetuning.training.seconds)
        now[0] += 40.0
        run = types.SimpleNamespace(weights_step=1)
        return run, {"eval_accuracy": 0.5}

    monkeypatch.setattr(seeds.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(seeds.finetuning, "work", work)
    settings = flags.replace(
        parse("--train_for=1m", f"--output_dir={tmp_path}"),
        num_seeds=3,
        do_predict=False,
    )
    path = str(tmp_path)
    folder = RunFolder(path, path, small.config(), None)
    data = inputs.Data(Labels(names=("a", "b")), ("accuracy",), (), False)
    seeds.work(settings, None, folder, data)
    assert seconds == [60.0, 20.0, 1.0]


def test_the_best_seed_has_the_highest_score():
    scores = [{"eval_f1": 0.5}, {"eval_f1": 0.7}, {"eval_f1": 0.6}]
    assert seeds.best_of(scores, "f1") == 1


@pytest.mark.parametrize(
    ("words", "recorded", "expected"),
    [
        ((), (False, True), (False, True)),
        ((), (None, None), (False, None)),
        (("--do_lower_case",), (None, None), (True, None)),
        (("--do_lower_case",), (False, True), "--do_lower_case=True; expected"),
        (("--nostrip_accents",), (False, True), "--strip_accents=False; expec"),
    ],
)
def test_the_casing_is_that_of_the_model(
    monkeypatch, tmp_path, words, recorded, expected
):
    texts.write_vocabulary(tmp_path / "vocab.txt")
    with open(tmp_path / "vocab.txt", "a") as file:
        file.write("Cat\n")  # so that a guess is: not lower-cased
    (tmp_path / "bert_config.json").write_text('{"vocab_size": 99}')
    monkeypatch.setattr(ModelFolder, "casing", Casing(*recorded))
    settings = parse("--init_checkpoint", str(tmp_path), *words)
    if isinstance(expected, str):
        with pytest.raises(UserError, match=expected):
            starting_model.find(settings.finetuning)
        return
    tokenizer = starting_model.find(settings.finetuning).tokenizer
    assert (tokenizer.do_lower_case, tokenizer.strip_accents) == expected
