"""`~` in the flags that name files and folders, of every script."""

import importlib
import os
import pathlib

import pytest

import create_vocab
from common import flags
from tests.helpers import text

ROOT = pathlib.Path(__file__).parents[2]
NO_PATHS = set(
    "delimiter gcp_project host id_column inputs label_column "
    "label_separator labels language layers master profile_steps runner "
    "signature task_name text_b_column text_column text_field "
    "tpu_name tpu_zone train_for train_language words".split()
)


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.mark.parametrize(
    "name", sorted(path.stem for path in ROOT.glob("*.py"))
)
def test_every_path_flag_of_every_script_knows_the_home_folder(name, home):
    """A new flag of text is a path, or is named in `NO_PATHS`."""
    script = importlib.import_module(name)
    declared = list(flags.flags_of(script.Settings))
    paths = {
        one.name
        for one in declared
        if one.kind in (str, tuple) and not one.choices
    } - NO_PATHS
    argv = [f"--{flag}=~/a*,b~,~/c" for flag in paths]
    argv += [f"--{x.name}={x.choices[0]}" for x in declared if x.choices]
    found = flags.parse([name, *argv], script.Settings, "")
    expected = f"{home}/a*,b~,{home}/c"
    assert paths
    assert flags.as_dict(found, "path") == dict.fromkeys(paths, expected)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("~", "{home}"),
        ("en=~/a*.gz,sw=~/b", "en={home}/a*.gz,sw={home}/b"),
        ("~/a:90,~/b:10:64", "{home}/a:90,{home}/b:10:64"),
        ("./~/a", "./~/a"),
        ("a~/b,~no-such-user/c", "a~/b,~no-such-user/c"),
    ],
)
def test_where_a_tilde_stands_for_the_home_folder(home, given, expected):
    argv = ["", f"--input_file={given}", "--output_file=x"]
    settings = flags.parse(argv, create_vocab.Settings, "")
    assert settings.input_file == expected.format(home=home)


def test_no_folder_is_named_by_a_tilde(home, tmp_path, run_script):
    text.write_corpus(home / "corpus.txt", 7)
    named = {"input_file": "~/corpus.txt", "output_file": "~/vocab.txt"}
    code, _, error = run_script(create_vocab, **named, vocab_size=149)
    assert code == 0, error
    assert (home / "vocab.txt").is_file()
    assert os.listdir(tmp_path) == ["home"]


TPU = "--use_tpu=True --tpu_name=some_tpu"
VOCABULARY = "--vocab_file=gs://bert_large/vocab.txt "
MODEL = (
    "--bert_config_file=gs://bert_large/bert_config.json "
    "--init_checkpoint=gs://bert_large/bert_model.ckpt"
)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (
            "run_classifier",
            f"{VOCABULARY}--task_name=MRPC --do_train=true --do_eval=true "
            "--data_dir=gs://glue/MRPC --max_seq_length=128 "
            "--train_batch_size=32 --learning_rate=2e-5 "
            "--num_train_epochs=3.0 --output_dir=gs://some_bucket/mrpc/",
        ),
        (
            "run_squad",
            f"{VOCABULARY}--do_train=True "
            "--train_file=gs://squad/train-v2.0.json "
            "--do_predict=True --predict_file=gs://squad/dev-v2.0.json "
            "--train_batch_size=24 --learning_rate=3e-5 "
            "--num_train_epochs=2.0 --max_seq_length=384 --doc_stride=128 "
            "--output_dir=gs://some_bucket/squad_large/ "
            "--version_2_with_negative=True",
        ),
        (
            "run_pretraining",
            "--input_file=gs://some_bucket/tf_examples.tfrecord* "
            "--do_train=True --do_eval=True --train_batch_size=32 "
            "--max_seq_length=128 --max_predictions_per_seq=20 "
            "--num_train_steps=20 --num_warmup_steps=10 --learning_rate=2e-5 "
            "--output_dir=gs://some_bucket/pretraining_output",
        ),
    ],
)
def test_command_lines_of_the_original_for_a_tpu(script, words):
    module = importlib.import_module(script)
    argv = [script, *MODEL.split(), *words.split(), *TPU.split()]
    settings = flags.parse(argv, module.Settings, "")
    found = flags.as_dict(settings)
    given = dict(word[2:].split("=", 1) for word in argv[1:])
    assert found["use_tpu"] is True
    paths = {k: x for k, x in given.items() if x.startswith("gs://")}
    assert len(paths) >= 4
    assert {name: found[name] for name in paths} == paths
