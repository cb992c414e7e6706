"""What every test sees: a quiet TensorFlow with four logical CPUs."""

import gc
import importlib.util
import io
import itertools
import json
import os
import random
import shutil
import sys
import tempfile

# The workers of pytest-xdist and all processes of tests inherit the folder.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="bert tests ")
    tempfile.tempdir = None
gc.disable()  # while the libraries are loaded, and for their objects later
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")  # also where GPUs are
# XLA's programs run for milliseconds, and compile for seconds. The second flag
# is that of fused steps, which XLA reads once in a process.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_backend_optimization_level=0 "
    "--xla_disable_hlo_passes=tree_reduction_rewriter",
)
os.environ.setdefault("TF_XLA_FLAGS", "")  # without `program_cache`
# The networks are too small for several threads, which would wait actively.
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import hypothesis
import pytest
import tensorflow as tf

import convert_checkpoint
import predict
from bert.common import main as main_lib
from bert.reports import drawing
from tests.helpers import determinism, perturbation

gc.freeze()
gc.enable()
# An assertion of a helper shows its values, as one of a test does.
pytest.register_assert_rewrite("tests.helpers")
# A busy machine is no failure, and a failure comes again.
hypothesis.settings.register_profile("tests", deadline=None, derandomize=True)
hypothesis.settings.load_profile("tests")
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 4,
)


def pytest_addoption(parser):
    parser.addoption(
        "--shuffle",
        type=int,
        metavar="SEED",
        help="random order of the modules and of the tests in each module",
    )
    parser.addoption(
        "--perturb",
        type=float,
        metavar="VALUE",
        help="multiply initial weights by 1 + VALUE or 1 - VALUE, as if the "
        "processor rounded differently",
    )
    parser.addoption(
        "--perturb-seed",
        type=int,
        default=1,
        metavar="SEED",
        help="seed of the signs of --perturb",
    )


def pytest_configure(config):
    if config.getoption("perturb"):
        perturbation.patch_keras()


@pytest.hookimpl(tryfirst=True)  # before the fixtures of the test
def pytest_runtest_setup(item):
    config = item.config
    amount = config.getoption("perturb")
    if item.get_closest_marker("bits"):
        amount = None
    perturbation.start(amount or 0.0, config.getoption("perturb_seed"))


def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.timeout(7200))
    seed = config.getoption("shuffle")
    if seed is not None:
        rng = random.Random(seed)
        groups = itertools.groupby(items, lambda item: item.path)
        modules = [[*tests] for _, tests in groups]
        for tests in modules:
            rng.shuffle(tests)
        rng.shuffle(modules)
        items[:] = itertools.chain(*modules)


def pytest_unconfigure(config):
    """Removes the temporary files; `--basetemp` keeps those of tests."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)


@pytest.fixture(autouse=True)
def no_determinism_and_no_seed():
    """A test does not depend on the runs of those before."""
    determinism.end()


@pytest.fixture(autouse=True, scope="module")
def no_collection_of_earlier_modules():
    """What a module leaves in Keras' caches takes no time later."""
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_report(monkeypatch):
    """Runs do not draw their report, which takes a second."""
    monkeypatch.setattr(drawing, "draw_trained", lambda *_: None)


@pytest.fixture
def eagerly():
    """Functions of TensorFlow are not traced, which takes longer than a step.

    `tests/bert/test_text_models.py` trains with functions.
    """
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture
def run_script(capsys):
    """Runs a script's main with flags; returns (exit code, out, error)."""

    def run(script, *flags, **named):
        argv = [script.__name__, *flags]
        argv += [f"--{name}={value}" for name, value in named.items()]
        capsys.readouterr()
        code = main_lib.run(script.main, argv)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def hide_package(monkeypatch):
    """Makes a package appear as not installed."""
    find = importlib.util.find_spec

    def hide(package):
        monkeypatch.setattr(
            importlib.util,
            "find_spec",
            lambda name: None if name == package else find(name),
        )

    return hide


@pytest.fixture
def ask(run_script, monkeypatch):
    """Runs predict.py on bytes; returns (code, predictions, error)."""

    def run(model, content, *words, **named):
        stdin = io.TextIOWrapper(io.BytesIO(content))
        monkeypatch.setattr(sys, "stdin", stdin)
        code, out, err = run_script(predict, *words, model=model, **named)
        return code, [json.loads(line) for line in out.splitlines()], err

    return run


@pytest.fixture
def convert(run_script):
    """Converts a model; returns the output, or with a code the error."""

    def run(path, target, output, code=0, **named):
        named = {"input": path, "to": target, "output": output, **named}
        found, out, err = run_script(convert_checkpoint, **named)
        assert found == code, err
        return out if code == 0 else err

    return run
