"""The vocabulary of a command beside its run, texts, records and export.

Another vocabulary than the one of the checkpoint: `bad_inputs/flag_cases.py`.
"""

import json

import pytest

import extract_features
import run_classifier
import run_ner
import run_pretraining
import run_squad
import run_swag
from bert.common import command_line
from bert.common.errors import UserError
from bert.data.text import vocabulary_checks
from bert.data.text.casing import Casing
from bert.modeling.formats import saved_models
from bert.modeling.formats.model_folder import ModelFiles, ModelFolder
from bert.runs import feature_extraction
from bert.tasks.features import settings as features_settings
from tests.helpers import classifier_files, pretraining_files, small, text

TASKS = {  # script -> file that it predicts, its content
    run_classifier: ("texts.txt", "the tree\n"),
    run_ner: ("words.txt", "the O\ntree O\n"),
    run_squad: (
        "squad.json",
        json.dumps([{"id": 7, "question": "the tree", "context": "the tree"}]),
    ),
    run_swag: (
        "choices.jsonl",
        json.dumps({"context": "the tree", "choices": ["sees", "follows"]}),
    ),
}
LINE = text.VOCABULARY.index("tree") + 1


def write_tokens(path, **changed):
    """Writes the vocabulary with some tokens replaced."""
    tokens = [changed.get(token, token) for token in text.VOCABULARY]
    text.write_vocabulary(path, tokens)
    return path


@pytest.fixture
def fail(tmp_path, run_script):
    """Runs a script with a vocabulary; returns its last line, the others.

    There is no vocabulary beside the checkpoint, of which a part is missing.
    """
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "x.ckpt.meta").touch()
    config = small.config(vocab_size=len(text.VOCABULARY))
    (tmp_path / "config.json").write_text(config.to_json())

    def run(script, *words, **named):
        named = {
            "bert_config_file": tmp_path / "config.json",
            "init_checkpoint": tmp_path / "model" / "x.ckpt",
            "output_dir": tmp_path / "run",
            **named,
        }
        code, _, err = run_script(script, *words, **named)
        assert code == 2, err
        *others, last = err.splitlines()
        return last, "\n".join(others)

    return run


@pytest.mark.parametrize("slot", ["house", "[unused7]"])
def test_a_run_goes_on_with_its_own_vocabulary_alone(fail, tmp_path, slot):
    """A word in an unused slot is another vocabulary, too."""
    (tmp_path / "run").mkdir()
    path = write_tokens(tmp_path / "run" / "vocab.txt", tree=slot, house="tree")
    before = path.read_bytes()
    other = write_tokens(tmp_path / "vocab.txt")
    words = "--do_predict", "--task_name=txt", "--predict_file=x"
    flags = {"max_seq_length": small.POSITIONS, "vocab_file": other}
    error, _ = fail(run_classifier, *words, **flags)
    assert error == (
        f"error: {other}:{LINE}: token 'tree'; expected {slot!r}, "
        f"as in {path}; pass another --output_dir, or the run's vocabulary"
    )
    assert path.read_bytes() == before


@pytest.mark.parametrize("script", TASKS)
def test_unknown_words_and_casing_are_warned_of(script, fail, tmp_path):
    name, content = TASKS[script]
    (tmp_path / name).write_text(content)
    task = {"labels": ["O"], "kind": "any"}
    if script is run_classifier:
        task = {"labels": ["0", "1"], "kind": "classes", "pairs": False}
    if script in (run_ner, run_classifier):
        (tmp_path / "model" / "task.json").write_text(json.dumps(task))
    words = ["--do_predict", "--do_lower_case"]
    flags = {"max_seq_length": small.POSITIONS, "predict_file": tmp_path / name}
    if script is run_classifier:
        flags |= {"task_name": "txt"}
    if script is run_squad:
        flags |= {"max_query_length": 7}
    for token, count in (("tree", 0), ("Tree", 1)):
        path = write_tokens(tmp_path / "vocab.txt", tree=token)
        error, before = fail(script, *words, **flags, vocab_file=path)
        assert "x.ckpt: no such checkpoint" in error
        assert before.count("texts are [UNK]; expected at most 1%") == count
        assert before.count("has some tokens with capital letters") == count


def test_unknown_words_of_sentences_are_warned_of(tmp_path, monkeypatch):
    classifier_files.write_model(tmp_path)
    lines = tmp_path / "lines.txt"
    lines.write_text("the tree\n")
    named = {
        "vocab_file": write_tokens(tmp_path / "vocab.txt", tree="Tree"),
        "bert_config_file": tmp_path / "bert_config.json",
        "init_checkpoint": tmp_path / "bert_model.ckpt",
        "max_seq_length": small.POSITIONS,
        "input_file": lines,
        "layers": -1,
        "output_file": tmp_path / "vectors.jsonl",
    }
    argv = ["", *(f"--{name}={value}" for name, value in named.items())]
    settings = command_line.parse(argv, extract_features.Settings, "")
    extraction = features_settings.check(settings)
    logged = []
    monkeypatch.setattr(vocabulary_checks, "log", logged.append)
    feature_extraction.check_first_rows(extraction, [str(lines)])
    warning = "texts are [UNK]; expected at most 1%"
    assert sum(warning in line for line in logged) == 1


def test_a_hub_modules_own_vocabulary_is_meant(tmp_path, monkeypatch):
    monkeypatch.setattr(saved_models, "read_casing", lambda path: Casing())
    (tmp_path / "assets").mkdir()
    (tmp_path / "saved_model.pb").touch()
    write_tokens(tmp_path / "assets" / "words.txt")
    other = write_tokens(tmp_path / "other.txt", tree="house", house="tree")
    with pytest.raises(UserError, match="/assets/words.txt"):
        ModelFolder.open(
            str(tmp_path), ModelFiles(vocab_file=str(other))
        ).check_vocabulary()


@pytest.mark.parametrize(("share", "count"), [(0.01, 0), (0.0613, 1)])
def test_unknown_words_of_records_are_warned_of(fail, tmp_path, share, count):
    path = tmp_path / "records" / "0.tfrecord"
    pretraining_files.write_records(path, 5)
    manifest = path.with_name("_0.manifest.json")
    content = json.loads(manifest.read_text())
    content["shares"] = {**content.get("shares", {}), "unknown": share}
    manifest.write_text(json.dumps(content))
    flags = {"input_file": path, "bert_config_file": tmp_path / "records.json"}
    flags["bert_config_file"].write_text(small.config().to_json())
    error, before = fail(run_pretraining, "--do_train", **flags)
    assert "no such checkpoint" in error
    warning = "warning: 6.1% of the tokens of the records are [UNK]; "
    assert before.count(warning) == before.count("[UNK]") == count
