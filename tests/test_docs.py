"""Commands of README.md and docs/ can be parsed, and snippets run.

Of each command the flags are parsed and the files and targets looked up.
"""

import ast
import importlib
import inspect
import json
import os
import pathlib
import pkgutil
import re
import runpy
import shlex
import shutil
import subprocess
import sys

import nbformat
import pytest

import bert
import export_hub
from bert.common import command_line, errors, outputs
from tests.helpers import (
    agents_page,
    api_pages,
    classifier_files,
    flags_page,
    library_files,
    model_server,
    notebooks,
    run_folders,
    small,
)
from tests.helpers.pretraining_files import write_records

ROOT = pathlib.Path(__file__).parents[1]
DOCS = ROOT / "docs"
FOUND = [*DOCS.glob("*.md"), *DOCS.glob("api/*.md")]
PAGES = [ROOT / "README.md", *sorted(FOUND)]
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.M | re.S)


LONG = {"max_position_embeddings": 131}  # as long as --max_seq_length
# The snippets of each page are one program.
PROGRAMS = ("library", "api/modules", "hub", "coming_from")


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
    units = re.findall(r"^ExecStart=\S*/(.*\n)", "".join(fences("ini")), re.M)
    found = {}
    for body in [*fences("sh"), *units]:
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


@pytest.mark.parametrize("command", commands())
def test_flags_files_and_targets_of_a_command_exist(monkeypatch, command):
    # The folders and extras of the reader may not be here.
    monkeypatch.setattr(outputs, "check_file", lambda *_: None)
    monkeypatch.setattr(errors, "check_packages", lambda *_, **__: None)
    for path in re.findall(r"-r (requirements\S+)|(tests/\S+)", command):
        assert (ROOT / "".join(path)).is_file()
    if command.startswith("make "):
        target = command.split()[1]
        subprocess.run(["make", "-n", target], cwd=ROOT, check=True)
    command = command.replace(" bert:cpu serve ", " python serve.py ")
    if found := re.search(r"python (\w+\.py.*?)(?: do .*| -- .*)?$", command):
        name, *words = shlex.split(found[1])
        script = importlib.import_module(name.removesuffix(".py"))
        command_line.parse([name, *words], script.Settings, "")


def test_every_page_is_in_the_list_of_pages():
    listed = (DOCS / "README.md").read_text()
    for page in DOCS.glob("*.md"):
        named = re.search(rf"\({page.name}[)#]", listed)
        assert page.name == "README.md" or named, page.name


def test_every_page_is_in_the_navigation_of_the_site():
    nav = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    names = re.findall(r"([\w/]+\.md)$", nav, re.M)
    notebooks = [x.with_suffix(".md") for x in DOCS.glob("tutorials/*.ipynb")]
    pages = [str(x.relative_to(DOCS)) for x in FOUND + notebooks]
    assert sorted(names) == sorted(pages)


def test_commands_are_in_blocks_of_the_shell():
    assert not fences("bash") + fences("shell") + fences("console")
    for body in fences(""):
        assert not re.search(r"^\s*(python|make|pip)\S* ", body, re.M), body


def test_snippets_are_python():
    for body in fences("python"):
        ast.parse(body)


def test_links_lead_to_files_and_headings():
    for page in [*ROOT.glob("*.md"), *PAGES[1:]]:
        for link in re.findall(r"\]\(([^)#]*(?:#[^)]*)?)\)", page.read_text()):
            if link.startswith("https://"):
                continue
            path, _, heading = link.partition("#")
            target = (page.parent / path) if path else page
            assert target.exists(), (page.name, link)
            if page in PAGES[1:]:  # the site has the files of docs/ alone
                assert target.resolve().is_relative_to(DOCS), (page.name, link)
            if heading:
                titles = re.findall(r"^#+ (.*)", target.read_text(), re.M)
                anchors = [
                    re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
                    for title in titles
                ]
                assert heading in anchors, (page.name, link)


def test_the_page_of_flags_is_the_generated_one():
    assert (DOCS / "flags.md").read_text() == flags_page.page()


def test_the_page_for_agents_is_the_generated_one():
    assert (ROOT / "AGENTS.md").read_text() == agents_page.page()


def test_the_pages_of_public_names_are_the_generated_ones():
    names = [name for group in api_pages.GROUPS.values() for name in group]
    assert sorted(names) == sorted(bert.__all__)
    pages = api_pages.pages()
    found = {x.name: x.read_text() for x in (DOCS / "api").glob("*.md")}
    assert {name: found.get(name) for name in pages} == pages


@pytest.mark.parametrize("name", bert.__all__)
def test_a_public_name_has_an_example_and_describes_its_arguments(name):
    """Arguments have a type and a meaning, optional ones also a default."""
    found = getattr(bert, name)
    text = inspect.getdoc(found)
    assert re.search(r"^    .*\bbert\.\w+", text, re.M)
    parameters = inspect.signature(found).parameters.values()
    for parameter in parameters:  # of Encoder: *args and **kwargs of Keras
        if parameter.kind < parameter.VAR_KEYWORD and name != "Encoder":
            line = rf"^    {parameter.name}: .+?\. .*(?:\n        .*)*"
            entry = re.search(line, text, re.M)
            assert entry, parameter.name
            if parameter.default is not parameter.empty:
                assert "efault" in entry[0], parameter.name


@pytest.mark.parametrize(
    "path", sorted(notebooks.FOLDER.glob("*.ipynb")), ids=lambda x: x.stem
)
def test_a_notebook_has_its_outputs_and_public_imports(path):
    notebook = nbformat.read(path, 4)
    nbformat.validate(notebook)
    codes = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [x.execution_count for x in codes] == [*range(1, len(codes) + 1)]
    for cell in codes:
        assert max(map(len, cell.source.splitlines())) <= 100
        for output in cell.outputs:
            assert output.output_type != "error"
    source = "\n".join(cell.source for cell in codes)
    assert "sys.path" not in source
    assert not re.search(r"^(from|import) bert\.|^from bert", source, re.M)
    text = "\n".join(x.source for x in notebook.cells)
    for link in re.findall(r"\]\((\.\./[^)#]+)", text):
        assert (path.parent / link).is_file(), link


def test_what_is_cited_is_this_version():
    version = re.search(
        r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.M
    )[1]
    cited = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {version}\n" in cited


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub with the models of README.md; its table is in this folder."""
    values = library_files.pretrained(tmp_path / "google", **LONG)
    library_files.huggingface(tmp_path / "model", values, **LONG)
    rows = ["text,label", *(f"{x} cat,good\n{x} dog,bad" for x in "abcdefg")]
    (tmp_path / "reviews.csv").write_text("\n".join(rows) + "\n")
    monkeypatch.chdir(tmp_path)
    names = (
        "google-bert/bert-base-uncased",
        "sentence-transformers/all-MiniLM-L6-v2",
    )
    models = dict.fromkeys(names, tmp_path / "model")
    with model_server.serving(monkeypatch, tmp_path, models) as server:
        yield server


@pytest.mark.slow
def test_the_snippets_of_the_readme_run(tmp_path, hub):
    readme = FENCE.findall((ROOT / "README.md").read_text())
    run_snippets(tmp_path, [x for _, kind, x in readme if kind == "python"])
    assert any(path.endswith("safetensors") for path in hub.asked)
    assert (tmp_path / "keras_export" / "saved_model.pb").is_file()


@pytest.mark.slow
def test_the_commands_on_a_table_of_the_readme_answer(
    tmp_path, hub, monkeypatch
):
    for name in ("run_classifier.py", "predict.py"):
        (tmp_path / name).symlink_to(ROOT / name)
    folders = [str(pathlib.Path(sys.executable).parent), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(folders))
    readme = FENCE.findall((ROOT / "README.md").read_text())
    *_, body = [body for _, kind, body in readme if kind == "sh"]
    command = ["bash", "-e", "-c", body]
    run = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE)
    *scores, answer = run.stdout.splitlines()
    assert scores[0].startswith("eval_accuracy = ")
    assert json.loads(answer)["probabilities"].keys() == {"bad", "good"}
    assert (tmp_path / "reviews" / "report.html").is_file()


def run_snippets(folder, snippets):
    """Runs them as one program."""
    path = folder / "snippets.py"
    path.write_text("\n".join(snippets))
    runpy.run_path(str(path))


def snippets(page):
    """Python snippets of a page of docs/."""
    found = FENCE.findall((DOCS / f"{page}.md").read_text())
    return [body for _, language, body in found if language == "python"]


@pytest.mark.long
@pytest.mark.parametrize("page", PROGRAMS)
def test_the_snippets_of_a_page_run(page, tmp_path, run_script, monkeypatch):
    library_files.pretrained(tmp_path / "model")
    write_records(tmp_path / "records" / "wiki.tfrecord", 7)
    (tmp_path / "config.json").write_text(small.config().to_json())
    rows = ["sentence\tlabel", "the cat\tfine", "a dog\tdull", "tree\tfine"]
    (tmp_path / "train.tsv").write_text("\n".join(rows) + "\n")
    monkeypatch.chdir(tmp_path)
    if page == "hub":
        named = {"model_checkpoint_path": "model", "default_seq_length": 13}
        for kind, path in (
            ("model", "encoder"),
            ("preprocessing", "preprocessor"),
        ):
            named |= {"export_type": kind, "export_path": path}
            code, _, error = run_script(export_hub, **named)
            assert code == 0, error
    run_snippets(tmp_path, snippets(page))


@pytest.mark.long
def test_the_task_of_the_pages_learns_and_is_exported(tmp_path):
    """Its files, added to a copy of the code."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "bert", tmp_path / "bert", ignore=ignored)
    text = (DOCS / "adding_a_task.md").read_text()
    blocks = re.findall(
        r"^### `([^`]+)`\n\n```python\n(.*?)^```$", text, re.M | re.S
    )
    for name, body in blocks:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with open(tmp_path / name, "a") as file:
            file.write(f"\n\n{body}")

    predictor = tmp_path / "bert" / "inference" / "predictor.py"
    body = predictor.read_text()
    line = "{  # kind in a `task.json` -> task\n"
    assert line in body
    body = body.replace(
        line, f"{line}    ordering.KIND: ordering.TextOrdering,\n"
    )
    imported = "from bert.tasks.ordering import task as ordering\nTASKS:"
    predictor.write_text(body.replace("TASKS:", imported, 1))

    classifier_files.write_model(tmp_path)
    a, b = "the cat sees", "a dog finds"
    rows = [f"{a},{b},0", f"{b},{a},1"] * 6
    table = "\n".join(["text,text_b,label", *rows])
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
    command = [sys.executable, "run_ordering.py", *words]
    subprocess.run(command, cwd=tmp_path, check=True)
    lines = (tmp_path / "run" / "predictions.tsv").read_text().split("\n")
    found = [line.split("\t") for line in lines[:-1]]
    assert [first for first, _ in found] == ["0", "1"] * 6
    assert run_folders.results(tmp_path / "run")["eval_accuracy"] == 1.0
    assert (tmp_path / "export" / "saved_model.pb").is_file()

    asked = json.dumps({"text": b, "text_b": a})
    shutil.copy(ROOT / "predict.py", tmp_path)
    command = [sys.executable, "predict.py", "--model=export", "--json"]
    printed = subprocess.run(
        command,
        cwd=tmp_path,
        check=True,
        capture_output=True,
        input=asked,
        text=True,
    )
    answer = json.loads(printed.stdout)
    assert answer["first"] == 1
    assert answer["probability"] == pytest.approx(float(found[1][1]), abs=1e-4)


def test_functions_that_a_page_names_exist():
    text = (DOCS / "coming_from.md").read_text()
    cells = re.findall(r"^\|.*\|(.*)\|$", text, re.M)  # the last of each row
    names = re.findall(r"`(bert\.[\w.]+)", "\n".join(cells))
    modules = (DOCS / "api" / "modules.md").read_text()
    listed = re.findall(r"^::: ([\w.]+)$", modules, re.M)
    contributing = (ROOT / "CONTRIBUTING.md").read_text()
    places = re.findall(r"`(bert(?:\.\w+){2,})`", contributing)
    assert min(len(names), len(listed), len(places)) > 15
    for name in names + listed + places:
        pkgutil.resolve_name(name)
