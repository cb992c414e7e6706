"""The vocabulary of a command beside its checkpoint, run, text and export."""

import pytest

import export_hub
import run_classifier
import run_ner
import run_squad
import run_swag
from tests import classifier_files, small, text

TASKS = (run_classifier, run_ner, run_squad, run_swag)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a config and a vocabulary, and no checkpoint."""
    folder = tmp_path_factory.mktemp("vocabulary_use")
    text.write_vocabulary(folder / "vocab.txt")
    config = small.config(
        vocab_size=len(text.VOCABULARY), max_position_embeddings=43
    )
    (folder / "bert_config.json").write_text(config.to_json())
    classifier_files.write_task(folder)
    return folder


def write_tokens(path, tokens):
    path.write_text("".join(f"{token}\n" for token in tokens))
    return path


def changed(**tokens):
    """The vocabulary with other tokens in the places of some."""
    return [tokens.get(token, token) for token in text.VOCABULARY]


@pytest.fixture
def flags_of(folder, tmp_path):
    def flags_of(script, **named):
        found = {
            "vocab_file": folder / "vocab.txt",
            "bert_config_file": folder / "bert_config.json",
            "output_dir": tmp_path / "run",
            "max_seq_length": 31,
            **named,
        }
        if script is run_classifier:
            found = {"task_name": "mrpc", "data_dir": folder, **found}
        if script is run_squad:
            found["max_query_length"] = 7
        return found

    return flags_of


@pytest.mark.parametrize("script", TASKS)
def test_a_vocabulary_that_no_export_holds_is_refused_before_training(
    script, flags_of, tmp_path, run_script
):
    path = write_tokens(tmp_path / "long.txt", changed(tree="t" * 257))
    named = flags_of(script, vocab_file=path, export_dir=tmp_path / "export")
    code, _, error = run_script(script, **named)
    line = text.VOCABULARY.index("tree") + 1
    assert code == 2
    assert error.startswith(f"error: {path}:{line}: token 'ttttttttt'... has ")
    assert not (tmp_path / "run").exists()


def test_a_preprocessor_refuses_it_too(tmp_path, run_script):
    path = write_tokens(tmp_path / "long.txt", changed(tree="t" * 257))
    code, _, error = run_script(
        export_hub,
        export_type="preprocessing",
        vocab_file=path,
        export_path=tmp_path / "export",
    )
    assert code == 2 and "has 257 bytes; expected at most 256" in error
