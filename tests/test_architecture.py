"""The rules of CONTRIBUTING.md, checked on the syntax trees."""

import ast
import functools
import graphlib
import importlib
import pathlib
import subprocess
import sys

import pytest

from tests.helpers import flags_page

ROOT = pathlib.Path(__file__).parents[1]
SCRIPTS = set(flags_page.SCRIPTS)
# The modules that a package below `bert` may import besides its own. The
# longest prefix of a module counts; "" is for the modules of `bert` itself.
MAY_IMPORT = {
    "common": set(),
    "common.jobs.any_runner": {"common", "common.jobs.beam_runner"},
    "data": {"common"},
    "data.feature_names": set(),
    "data.pooling": {"common"},
    "data.sequences": {"common", "data.feature_names"},
    "data.sequence_packing": {"data.feature_names", "data.sequences"},
    "data.text": {"common", "data.feature_names", "data.sequences"},
    "data.corpus": {
        "common",
        "data.feature_names",
        "data.sequences",
        "data.text",
    },
    "data.records": {
        "common",
        "data.feature_names",
        "data.sequences",
        "data.text",
    },
    "data.pretraining": {"common", "data"},
    "modeling": {"common", "data.feature_names"},
    "modeling.engines": {"common", "data", "modeling"},
    "modeling.engines.keras_engine": {"common", "data", "modeling", "training"},
    "modeling.formats": {
        *(
            "common",
            "data.feature_names",
            "data.pooling",
            "data.sequence_packing",
        ),
        *("data.text", "modeling"),
    },
    "training": {
        *("common", "data.feature_names", "data.bucketing", "data.records")
    },
    "export": {"common", "data", "modeling"},
    "tasks": {"common", "data", "modeling", "training.settings"},
    "inference": {"common", "data", "modeling", "tasks"},
    "runs": {
        *("common", "data", "modeling", "training", "export", "tasks"),
        "inference",
    },
    "runs.driver": {
        *("inference", "reports.drawing", "runs", "tasks", "training")
    },
    "models": {
        *("common", "data", "modeling", "training", "export", "tasks"),
        "inference",
    },
    "serving": {"common", "modeling", "inference"},
    "checks": {"common", "data", "modeling", "training", "tasks"},
    "reports": {"common", "tasks.metrics"},
    "reports.demo_pages": {
        *("common", "data.text", "modeling", "export", "tasks", "inference"),
        *("models", "reports"),
    },
    "": {"common", "data", "modeling", "training", "models"},
}
# Only scripts import them, and modules whose rule names them.
ADD_ONS = {
    "checks",
    "reports",
    "serving",
    "common.jobs.beam_runner",
}
STARTERS = {"runs.driver", "common.jobs.any_runner"}  # their rules name add-ons
TASKS = {
    "pretraining",
    "classification",
    "squad",
    "ner",
    "swag",
    "similarity",
    "features",
    "fill_mask",
}
PACKAGES = {name for name in MAY_IMPORT if name and "." not in name}
OUTSIDE = {"tests", "benchmarks", "examples"}  # may import everything
# Calls that open, list, write and remove files. Only `common.storage` and
# `common.atomic` have them, and the files or functions named below, for
# paths that are in no flag.
FILE_CALLS = {
    "open",
    *map("os.path.{}".format, ("exists", "lexists", "isfile", "isdir")),
    *map("os.path.{}".format, ("islink", "getsize", "getmtime", "samefile")),
    *map("os.{}".format, ("makedirs", "mkdir", "remove", "unlink", "rmdir")),
    *map("os.{}".format, ("rename", "replace", "listdir", "scandir", "walk")),
    *map("os.{}".format, ("stat", "link", "symlink", "truncate", "chmod")),
    *map("shutil.{}".format, ("copy", "copy2", "copyfile", "copytree")),
    *map("shutil.{}".format, ("move", "rmtree", "disk_usage")),
    *map("glob.{}".format, ("glob", "iglob")),
}
FILES_OF_NO_FLAG = {
    "bert/common/storage.py": "",
    "bert/common/atomic.py": "",
    "bert/common/nvidia.py": "the files of GPUs",
    "bert/common/jobs/locks.py": "locks, which are local",
    "bert/common/jobs/scratch.py:claim": "a new folder, which is local",
    "bert/runs/program_cache.py": "the cache, which is local",
    "bert/runs/opening.py:open_folder": "/dev/null",
    "bert/runs/opening.py:claim": "the folder of a lock, which is local",
    "bert/common/processes.py:cpu_info": "/proc/cpuinfo",
    "bert/training/memory_estimate.py": "/proc/self",
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


@functools.cache
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


def sources(*folders: str) -> list[pathlib.Path]:
    paths = [ROOT / name for name in folders]
    if not folders:
        paths = [
            path
            for path in ROOT.iterdir()  # what is skipped is not even walked
            if not path.name.startswith(".")  # environments, git
            and path.name != "build"
            and not path.is_symlink()
            and (path.is_dir() or path.suffix == ".py")
        ]
    listed = []
    for path in paths:
        listed += path.rglob("*.py") if path.is_dir() else [path]
    return sorted(listed)


def top_level_modules(tree: ast.Module) -> set[str]:
    """First names of what is imported when the module is imported."""
    outer = ast.Module(
        [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)],
        [],
    )
    return {name.split(".")[0] for name in imported(outer)}


def is_below(name: str, prefixes) -> bool:
    return any(name == x or name.startswith(f"{x}.") for x in prefixes)


def module_of(path: pathlib.Path) -> str:
    return ".".join(path.relative_to(ROOT / "bert").with_suffix("").parts)


def rule_of(module: str) -> str:
    return max(
        (x for x in MAY_IMPORT if is_below(module, [x])), key=len, default=""
    )


def test_only_scripts_end_in_py_at_the_root():
    assert {path.stem for path in ROOT.glob("*.py")} == SCRIPTS


def test_no_circle_of_packages_is_allowed():
    graph = {}
    for module, names in MAY_IMPORT.items():
        package = module.split(".")[0]
        allowed = {name.split(".")[0] for name in names} - {package}
        graph[package] = graph.get(package, set()) | allowed
    graphlib.TopologicalSorter(graph).prepare()


def test_every_folder_with_code_has_a_rule():
    folders = {path.relative_to(ROOT).parts[0] for path in sources()}
    folders = {name for name in folders if not name.endswith(".py")}
    assert folders == {"bert"} | OUTSIDE
    packages = {path.parent.name for path in ROOT.glob("bert/*/[!_]*.py")}
    assert packages == PACKAGES


@pytest.mark.parametrize("package", ["", *sorted(PACKAGES)])
def test_packages_import_only_what_the_table_allows(package):
    paths = sources(f"bert/{package}") if package else ROOT.glob("bert/*.py")
    for path in paths:
        module = module_of(path)
        rule = rule_of(module)
        task = module.split(".")[1] if package == "tasks" else None
        for full_name in imported(tree_of(path)):
            top, _, name = full_name.partition(".")
            assert top not in OUTSIDE | SCRIPTS, f"{path}: imports {full_name}"
            if top != "bert" or not is_below(name, PACKAGES):
                continue
            allowed = is_below(name, MAY_IMPORT[rule] | {rule})
            if task in TASKS and is_below(name, ["tasks"]):
                other = (name.split(".") + [""])[1]
                allowed = other == task or other not in TASKS
            elif package == "tasks" and is_below(name, ["tasks"]):
                allowed = name.split(".")[1] not in TASKS
            if is_below(name, ADD_ONS) and rule not in STARTERS:
                allowed = is_below(module, ADD_ONS)
            assert allowed, f"{path}: imports {full_name}"


@pytest.mark.parametrize("link", ["modeling", "data"])
def test_the_links_at_the_root_name_the_package_to_import(link):
    assert (ROOT / link).readlink() == pathlib.Path("bert", link)
    with pytest.raises(ImportError, match=f"^import bert.{link} instead"):
        importlib.import_module(link)


@pytest.mark.parametrize("script", sorted(SCRIPTS))
def test_scripts_do_not_import_each_other(script):
    names = imported(tree_of(ROOT / f"{script}.py"))
    assert not {name.split(".")[0] for name in names} & (SCRIPTS | OUTSIDE)


def test_only_the_command_line_uses_absl():
    """Settings are dataclasses: nothing else reads or takes `FlagValues`."""
    for path in sources("bert", *(f"{name}.py" for name in SCRIPTS)):
        if path == ROOT / "bert" / "common" / "command_line.py":
            continue
        tree = tree_of(path)
        names = {name.split(".")[0] for name in imported(tree)}
        assert "absl" not in names, path
        assert "FlagValues" not in ast.unparse(tree), path


def test_scripts_check_their_flags_before_tensorflow_is_imported():
    """The imports at the top of a script reach no TensorFlow."""
    code = f"import sys, {', '.join(sorted(SCRIPTS))}\n"
    code += "assert not {'tensorflow', 'keras'} & sys.modules.keys()"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_training_path_needs_no_text_or_hub_library():
    """TPU hosts may not have them."""
    for path in sources("bert/data", "bert/modeling", "bert/training"):
        unwanted = {"tensorflow_text", "tensorflow_hub", "tf_keras"}
        assert not unwanted & top_level_modules(tree_of(path)), path


def test_no_task_imports_tensorflow():
    """Their predictions need it neither in a server nor in a script."""
    for path in sources("bert/tasks"):
        tops = {name.split(".")[0] for name in imported(tree_of(path))}
        assert not {"tensorflow", "keras"} & tops, path


def test_our_classes_subclass_only_a_few_classes():
    ours = {
        node.name
        for path in sources("bert")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ClassDef)
        and not any(
            isinstance(x, ast.AnnAssign)
            and ast.unparse(x.value or x).startswith(("flag(", "changed("))
            for x in node.body
        )
    }
    for path in sources():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                bases = set(map(ast.unparse, node.bases)) - {"keras.Model"}
                bases = {base.split(".")[-1] for base in bases}
                bases -= {"TextModel", "BaseSettings", "Task", "InputFile"}
                bases -= {"Loss", "LabelLoss", "Job", "RowJob"}
                assert not bases & ours, f"{path}:{node.lineno}: {node.name}"


def test_the_network_is_made_of_keras_ops_alone():
    """Only dropout, fused operations and file formats use TensorFlow.

    So do the losses of embeddings, which compare the rows of all replicas, and
    the Keras engine.
    """
    known = {"dropout", "fused_ops", "embedding_losses", "keras_engine"}
    known |= {"checkpoints", "conversion", "tf_hub"}
    known |= {"model_garden", "saved_models"}
    for path in sources("bert/modeling"):
        if path.stem in known:
            continue
        assert "tensorflow" not in top_level_modules(tree_of(path)), path


def test_the_builders_need_no_tensorflow():
    """They also run on JAX and PyTorch, where it is not installed."""
    names, found = ["networks"], set()
    while names:
        path = ROOT / "bert" / "modeling" / f"{names.pop()}.py"
        if path.is_file() and path not in found:
            found.add(path)
            parts = (name.split(".") for name in imported(tree_of(path)))
            names += [x[2] for x in parts if x[:2] == ["bert", "modeling"]]
    found = {path.stem for path in found}
    assert {"networks", "heads", "encoder", "layers"} <= found
    assert not {"checkpoints", "tf_hub"} & found  # these import TensorFlow


def test_only_formats_and_surgery_have_checkpoint_names():
    known = {
        "checkpoints",
        "conversion",
        "huggingface",
        "model_garden",
        "openvino",
        "saved_models",
        "extend_embeddings",
        "kept_layers",
        "model_card",
        "task_heads",
    }
    for path in sources("bert/modeling", "bert/training", "bert/data"):
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


def test_files_of_flags_are_opened_by_storage_alone():
    found = set()
    scripts = [f"{name}.py" for name in SCRIPTS]
    for path in sources("bert", *scripts):
        name = path.relative_to(ROOT).as_posix()
        for outer in tree_of(path).body:
            names = {name, f"{name}:{getattr(outer, 'name', '')}"}
            for node in filter(_is_file_call, ast.walk(outer)):
                excused = names & set(FILES_OF_NO_FLAG)
                assert excused, f"{path}:{node.lineno}"
                found |= excused
    assert found == set(FILES_OF_NO_FLAG)


def _is_file_call(node: ast.AST) -> bool:
    if not isinstance(node, ast.Name | ast.Attribute | ast.Call):
        return False
    text = ast.unparse(node)
    return text in FILE_CALLS or (
        text.startswith("pathlib.Path(")
        and not text.startswith("pathlib.Path(__file__)")
    )


def test_cores_are_counted_in_one_module():
    """`os.cpu_count` counts cores that the process may not use."""
    using = [
        path.relative_to(ROOT).as_posix()
        for path in sources("bert", *(f"{name}.py" for name in SCRIPTS))
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Attribute)
        and node.attr in ("cpu_count", "process_cpu_count", "sched_getaffinity")
    ]
    assert set(using) == {"bert/common/processes.py"}


def test_graphs_are_loaded_in_one_module():
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
    assert ours == {"bert/modeling/tf_hub.py"}
