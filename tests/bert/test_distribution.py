import pathlib
import shutil
import subprocess
import sys
import zipfile

import pytest

from tests.helpers import flags_page

ROOT = pathlib.Path(__file__).parents[2]
SCRIPTS = [f"{name}.py" for name in flags_page.SCRIPTS]
BUILD = "import sys, setuptools.build_meta as b; b.build_{}(sys.argv[1])"
# Names of ours that a user's own modules have too.
FOREIGN = ("common", "data", "modeling", "training", "tasks", "fill_mask")
# Imports every module under the names of the wheel, and uses some by name.
IMPORT_ALL = """
import importlib, pickle, pkgutil, sys
import data, training

import bert

assert "tensorflow" not in sys.modules
for found in pkgutil.walk_packages(bert.__path__, "bert."):
    importlib.import_module(found.name)
ours = [m for m in sys.modules.values() if (m.__name__ + ".")[:5] == "bert."]
folders = {m.__file__.rpartition("/bert/")[0] for m in ours if m.__file__}
assert folders == {sys.argv[1]}, folders
assert len(ours) > 100, len(ours)
assert data.OWN and training.OWN
tops = {name.split(".")[0] for name in sys.modules}
assert not tops & {"modeling", "tasks", "checks", "serving", "common"}, tops

from bert.data.corpus import raw_text

worker = pickle.loads(pickle.dumps(raw_text._splitter("en")))
assert worker.func is pkgutil.resolve_name(
    "bert.data.corpus.raw_text:_split_chunk"
)
assert worker([(0, "One. Two.")])[0][2] == 2
assert bert.Encoder.__module__ == "bert.modeling.encoder"
import keras
for name in ("bert>WarmupLinearDecay", "bert>Encoder", "bert>HubEncoder"):
    known = keras.saving.get_registered_object(name)
    assert known.__module__.startswith("bert."), name
"""


def build(what, root, folder):
    """Builds as pip does, from a copy of the sources."""
    code = [sys.executable, "-c", BUILD.format(what), str(folder)]
    done = subprocess.run(code, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """The files of the checkout that a build reads, links as links."""
    folder = tmp_path_factory.mktemp("checkout")
    names = ["bert", "modeling", "data", *SCRIPTS]
    for name in [*names, "pyproject.toml", "README.md", "LICENSE"]:
        if (ROOT / name).is_symlink():
            (folder / name).symlink_to((ROOT / name).readlink())
        elif (ROOT / name).is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, ignore=ignore)
        else:
            shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(checkout, tmp_path_factory):
    return build("wheel", checkout, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The files of the wheel, in a folder outside of the checkout."""
    folder = tmp_path_factory.mktemp("installed")
    shutil.unpack_archive(wheel, folder, "zip")
    return folder


def run(installed, *words, cwd):
    """Runs Python with a user's own modules and then the wheel's."""
    for name in FOREIGN:
        (cwd / f"{name}.py").write_text("OWN = True\n")
    path = f"{cwd}:{installed}"
    done = subprocess.run(
        [sys.executable, *words],
        cwd=cwd,
        env={"PYTHONPATH": path, "TF_CPP_MIN_LOG_LEVEL": "2", "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done


def contents(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def test_a_wheel_holds_one_package_with_every_module(wheel):
    names = set(contents(wheel))
    tops = {name.split("/")[0] for name in names}
    assert tops == {"bert", "bert-1.0.0.dist-info"}
    modules = {
        path.relative_to(ROOT).as_posix()
        for pattern in ("*.py", "*.html", "*.css", "*.json", "py.typed")
        for path in (ROOT / "bert").rglob(pattern)
    }
    scripts = {f"bert/scripts/{name}" for name in SCRIPTS}
    assert len(modules) > 100
    listed = {name for name in names if name.startswith("bert/")}
    assert listed == modules | scripts


def test_a_wheel_from_an_sdist_has_the_same_files(checkout, wheel, tmp_path):
    for name in ("sdist", "source", "wheel"):
        (tmp_path / name).mkdir()
    sdist = build("sdist", checkout, tmp_path / "sdist")
    shutil.unpack_archive(sdist, tmp_path / "source", filter="data")
    (root,) = (tmp_path / "source").iterdir()
    again = build("wheel", root, tmp_path / "wheel")
    assert contents(again).keys() == contents(wheel).keys()


def test_the_command_and_the_license_are_in_the_metadata(wheel):
    files = contents(wheel)
    entries = files["bert-1.0.0.dist-info/entry_points.txt"].decode()
    assert "bert = bert.__main__:main" in entries
    metadata = files["bert-1.0.0.dist-info/METADATA"].decode()
    for extra in ("gpu", "beam", "parquet"):
        assert f"Provides-Extra: {extra}\n" in metadata
    assert "bert-1.0.0.dist-info/licenses/LICENSE" in files


@pytest.mark.slow
def test_modules_are_imported_beside_a_users_own(installed, tmp_path):
    code = tmp_path / "import_all.py"
    code.write_text(IMPORT_ALL)
    run(installed, str(code), str(installed), cwd=tmp_path)


def test_modules_of_the_wheel_run_as_commands(installed, tmp_path):
    done = run(installed, "-m", "bert", "configs", cwd=tmp_path)
    folder = pathlib.Path(done.stdout.strip())
    assert (folder / "bert_quickstart.json").is_file()
    assert installed in folder.parents
