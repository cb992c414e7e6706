import glob
import inspect
import pathlib
import re
import runpy
import subprocess
import sys

import keras
import numpy as np
import pytest

import bert
from bert import library
from tests.helpers import library_files, pretraining_files, small

ROOT = pathlib.Path(__file__).parents[2]


def examples(name):
    """The indented lines of a docstring before its first section."""
    text = inspect.getdoc(getattr(bert, name)) + "\n"
    text = re.split(r"^\w+:$", text, flags=re.M)[0]
    lines = [x for x in text.splitlines() if x.startswith("    ")]
    return inspect.cleandoc("\n".join(["", *lines]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("library")
    library_files.pretrained(found / "model")
    pretraining_files.write_records(found / "records" / "a.tfrecord", 7)
    return found


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("name", bert.__all__)
def test_the_example_of_the_docstring_runs(name, folder, tmp_path, monkeypatch):
    code = examples(name)
    assert f"bert.{name}" in code or name == "Encoder"
    monkeypatch.chdir(tmp_path)
    for part in ("model", "records"):
        (tmp_path / part).symlink_to(folder / part)
    encoder, tokenizer = bert.load_encoder("model")
    if name == "pretraining_dataset":  # of the records' vocabulary
        encoder = bert.new_encoder(small.config(num_hidden_layers=1))
    inputs = tokenizer(["the cat sees", "a dog"])
    given = {"encoder": encoder, "tokenizer": tokenizer, "inputs": inputs}
    (tmp_path / "example.py").write_text(code)
    modules = {"bert": bert, "keras": keras, "np": np}
    runpy.run_path("example.py", given | modules)


def _run(code, *options):
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )


CLASS = re.compile(r'^@keras.*serializable\("bert"\)\nclass (\w+)', re.M)


@pytest.mark.slow
def test_every_class_is_known_to_keras():
    paths = glob.glob(f"{ROOT}/bert/**/*.py", recursive=True)  # of links too
    sources = [pathlib.Path(path).read_text() for path in paths]
    names = [f"bert>{x}" for text in sources for x in CLASS.findall(text)]
    assert len(names) > 10
    done = _run(
        "import keras, bert\n"
        f"for name in {names}:\n"
        "    assert keras.saving.get_registered_object(name), name"
    )
    assert done.returncode == 0, done.stderr


def test_a_missing_package_is_named_with_the_remedy():
    done = _run("import bert; bert.new_encoder", "-S")
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: {sys.executable} has no pack")
    assert "activate" in last or "requirements.txt" in last
    assert "During handling" not in done.stderr


def test_the_tokenizer_and_the_config_need_no_tensorflow():
    done = _run(
        "import sys; sys.modules['tensorflow'] = None; import bert; "
        "print(bert.Tokenizer.__name__, bert.BertConfig.__name__); "
        "bert.new_encoder"
    )
    assert done.stdout == "Tokenizer BertConfig\n"
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ModuleNotFoundError: ")
    assert "has no package tensorflow; " in last


def test_the_names_are_the_same_in_both_modules():
    assert bert.__all__ == sorted(bert.__all__)
    assert set(bert.__all__) <= set(dir(library))
    assert set(bert.__all__) <= set(dir(bert))
    assert bert.embed is library.embed


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'bert' has no attribute 'Bert'"):
        _ = bert.Bert
