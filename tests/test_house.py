"""The rules of the house, held over the syntax tree."""

import ast
import pathlib
import tokenize

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PACKAGES = ("data", "modeling", "training", "evaluation", "serving")
MAY_IMPORT = {
    "data": set(),
    "modeling": {"data.features"},
    "training": set(),
    "evaluation": {"data"},
    "serving": {"data", "modeling"},
}
FORBIDDEN_CALLS = {
    "pickle.load",
    "pickle.loads",
    "torch.load",
    "joblib.load",
    "yaml.load",
    "eval",
    "exec",
    "enable_unsafe_deserialization",
    "extractall",
    "ignore_errors",
}
FORBIDDEN_KEYWORDS = {("allow_pickle", True), ("safe_mode", False)}


def sources(*folders: str) -> list[pathlib.Path]:
    if folders:
        return [p for f in folders for p in sorted((ROOT / f).rglob("*.py"))]
    skipped = {".venv", ".venv-peers", "build", ".git"}
    found = list(ROOT.glob("*.py"))
    for folder in ROOT.iterdir():  # what is skipped is not even walked
        if folder.is_dir() and folder.name not in skipped:
            found += folder.rglob("*.py")
    return sorted(found)


def tree_of(path: pathlib.Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.Module) -> set[str]:
    """`a.b` for `import a.b` and `from a import b`."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def top_level_modules(tree: ast.Module) -> set[str]:
    """First names of what is imported when the module is imported."""
    outer = ast.Module(
        [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)],
        [],
    )
    return {name.split(".")[0] for name in imported(outer)}


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_import_only_what_the_star_allows(package):
    for path in sources(package):
        for name in imported(tree_of(path)):
            other = name.split(".")[0]
            if other not in PACKAGES or other == package:
                continue
            allowed = any(
                name == entry or name.startswith(f"{entry}.")
                for entry in MAY_IMPORT[package]
            )
            assert allowed, f"{path}: imports {name}"


def test_feature_names_import_nothing():
    assert imported(tree_of(ROOT / "data" / "features.py")) == set()


def test_packages_know_no_flags():
    for path in sources(*PACKAGES):
        names = {name.split(".")[0] for name in imported(tree_of(path))}
        assert "absl" not in names, path


def test_scripts_define_no_flag_when_imported():
    for path in ROOT.glob("*.py"):
        for node in tree_of(path).body:
            calls = [
                call
                for call in ast.walk(node)
                if isinstance(call, ast.Call)
                and ast.unparse(call.func).startswith("flags.DEFINE")
            ]
            inside = isinstance(node, ast.FunctionDef | ast.ClassDef)
            assert inside or not calls, f"{path}:{node.lineno}"


def scripts() -> list[pathlib.Path]:
    """What a user runs."""
    found = sorted(ROOT.glob("*.py"))
    return [p for p in found if "def main(" in p.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", scripts(), ids=str)
def test_scripts_check_their_flags_before_tensorflow_is_imported(path):
    """What a script imports at its top reaches no TensorFlow."""
    reached, waiting = set(), [path]
    while waiting:
        tree = tree_of(waiting.pop())
        tops = ast.Module(
            [
                n
                for n in tree.body
                if isinstance(n, ast.Import | ast.ImportFrom)
            ],
            [],
        )
        for name in imported(tops):
            for module in (name, name.rpartition(".")[0]):
                source = ROOT / (module.replace(".", "/") + ".py")
                if source.is_file() and source not in reached:
                    reached.add(source)
                    waiting.append(source)
            assert name.split(".")[0] not in ("tensorflow", "keras"), name


def test_training_path_needs_no_text_or_hub_library():
    """TPU hosts may not have them."""
    for path in sources("data", "modeling", "training"):
        unwanted = {"tensorflow_text", "tensorflow_hub", "tf_keras"}
        assert not unwanted & top_level_modules(tree_of(path)), path


def test_files_and_functions_are_small():
    for path in sources():
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= 500, f"{path} has {lines} lines"
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef):
                length = node.end_lineno - node.lineno + 1
                assert length <= 80, f"{path}:{node.lineno}: {node.name}"


def test_no_file_is_called_utils():
    assert [p for p in sources() if p.stem in ("utils", "helpers")] == []


def test_our_classes_do_not_subclass_each_other():
    ours = {
        node.name
        for path in sources(*PACKAGES)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
    }
    for path in sources():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                bases = {
                    ast.unparse(base).split(".")[-1] for base in node.bases
                }
                assert not bases & ours, f"{path}:{node.lineno}: {node.name}"


def test_the_network_is_made_of_keras_ops_alone():
    """TensorFlow-only: dropout, what makes it fast, formats of files."""
    formats = {"checkpoints", "hub", "model_garden", "saved_models"}
    for path in sources("modeling"):
        if path.stem in formats | {"dropout", "fused_ops"}:
            continue
        assert "tensorflow" not in top_level_modules(tree_of(path)), path


def test_only_formats_and_surgery_know_checkpoint_names():
    known = {
        "checkpoints",
        "huggingface",
        "model_garden",
        "saved_models",
        "extend_embeddings",
    }
    for path in sources("modeling", "training", "data"):
        if path.stem not in known:
            text = path.read_text(encoding="utf-8")
            assert "cls/predictions" not in text, path
            assert "bert/encoder" not in text, path


def test_unsafe_calls_do_not_appear():
    for path in sources():
        for node in ast.walk(tree_of(path)):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func)
            assert name not in FORBIDDEN_CALLS, f"{path}:{node.lineno}"
            assert name.split(".")[-1] not in {
                call for call in FORBIDDEN_CALLS if "." not in call
            }, f"{path}:{node.lineno}"
            for keyword in node.keywords:
                value = getattr(keyword.value, "value", None)
                assert (keyword.arg, value) not in FORBIDDEN_KEYWORDS, path


def test_graphs_are_loaded_in_one_place_behind_the_scan():
    """Everything else reads weights and JSON."""
    loaders = (
        "saved_model.load",
        "tensorflow_hub.load",
        "KerasLayer",
        "TFSMLayer",
        "saving.load_model",
        "models.load_model",
    )
    calls = {
        str(path.relative_to(ROOT))
        for path in sources()
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).endswith(loaders)
    }
    ours = {call for call in calls if not call.startswith("tests/")}
    assert ours == {"modeling/hub.py"}


def lines_of_code(path: pathlib.Path) -> int:
    """Lines that hold code: not blank, not comment, not docstring."""
    with tokenize.open(path) as file:
        tokens = list(tokenize.generate_tokens(file.readline))
    silent = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    lines = set()
    for token in tokens:
        if token.type not in silent:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            first = node.body[0] if node.body else None
            if ast.get_docstring(node) is not None:
                lines -= set(range(first.lineno, first.end_lineno + 1))
    return len(lines)


def test_code_reachable_from_run_pretraining_fits_the_bill():
    """Of every module of ours, also those that are imported late."""
    reached, waiting = set(), [ROOT / "run_pretraining.py"]
    while waiting:
        path = waiting.pop()
        reached.add(path)
        for name in imported(tree_of(path)):
            for module in (name, name.rpartition(".")[0]):
                source = ROOT / (module.replace(".", "/") + ".py")
                if source.is_file() and source not in reached:
                    waiting.append(source)
    lines = sum(map(lines_of_code, reached))
    assert len(reached) > 15
    assert lines <= 4565, lines
