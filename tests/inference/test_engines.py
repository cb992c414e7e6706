"""The engines of a `Predictor`: Keras, and OpenVINO without TensorFlow."""

import concurrent.futures
import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

import bert
import convert_checkpoint
import extract_features
import predict
import run_classifier
from bert.common import nvidia
from bert.common.errors import UserError
from bert.data import sequence_packing
from bert.inference import predictor as predictor_lib
from bert.inference.predictor import Predictor, json_values
from bert.modeling import checkpoints
from bert.modeling import networks as networks_lib
from bert.modeling.engines import openvino_engine
from bert.modeling.engines.keras_engine import KerasEngine
from bert.modeling.engines.openvino_engine import OpenVINOEngine
from bert.modeling.task_heads import CLASSIFIER, TOKENS
from bert.models import embeddings
from bert.runs import feature_extraction
from bert.tasks.classification.task import TextClassification
from bert.training import distribution
from tests.helpers import classifier_files, once, small, tiny, trained
from tests.helpers.classifier_files import (
    classifier_of,
    embedding_model_of,
    write_model,
    write_networks,
)

ROOT = pathlib.Path(predict.__file__).parent
TEXTS = [
    "the cat sees a dog",
    "",
    "zzz \u00e9\u4e2d\U0001f600",
    "tree " * 97,
    "the old dog finds the small red house near the warm river",
    *(f"stones {'like ' * n}" for n in range(41)),
]


@pytest.fixture
def model(tmp_path_factory):
    return classifier_files.shared_networks(tmp_path_factory)


@pytest.fixture
def encoder(tmp_path_factory):
    """As `model`, of an embedding model."""

    def write(folder):
        write_networks(folder, embedding_model_of(folder))

    return str(once.written(tmp_path_factory, "encoder", write) / "model")


def examples_of(texts):
    return [{"text": text} for text in texts]


WITHOUT = """
import sys

class Refusal:
    def find_spec(self, name, *_):
        if name in ("tensorflow", "keras", "scipy", "sklearn"):
            raise ImportError(name)

sys.meta_path.insert(0, Refusal())
"""


def without_tensorflow(code, *words, **options):
    """Runs Python where TensorFlow cannot be imported."""
    command = [sys.executable, "-c", WITHOUT + code, *words]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, **options
    )
    assert done.returncode == 0, done.stderr
    return done


ANSWER = """
import json, predict
from bert.inference.predictor import Predictor
from tests.helpers import http_server
examples = json.loads(sys.argv.pop())
predict.main(sys.argv)
queue = http_server.queue_of(Predictor.open(sys.argv[1].partition("=")[2]))
client = http_server.app_of(queue).test_client()
print(client.get("/v1/models/mails/metadata").text.replace("\\n", ""))
answer = client.post("/v1/models/mails:predict", json={"instances": examples})
print(json.dumps(answer.json["predictions"]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "example"),
    [
        ("labels", {"text": "the cat"}),
        ("questions", {"question": "the cat", "context": "a cat é sees"}),
        ("words", {"text": "the cat, é"}),
        ("choices", {"context": "the cat", "choices": ["a", "b", "c"]}),
    ],
)
def test_lines_and_requests_are_answered_without_tensorflow(
    tmp_path_factory, tmp_path, name, example
):
    """In a folder whose name has special characters."""
    export = trained.folder(tmp_path_factory, name).export
    folder = tmp_path / "-v %s 'é; {x}"
    shutil.copytree(export / "openvino", folder)
    flags = f"--model={folder}", "--json", json.dumps([example] * 2)
    done = without_tensorflow(ANSWER, *flags, input=json.dumps(example) + "\n")
    line, described, answers = map(json.loads, done.stdout.splitlines())
    (expected,) = json_values(
        Predictor.open(str(export), "openvino")([example])
    )
    assert line == expected and answers == [expected] * 2
    signatures = described["metadata"]["signature_def"]["signature_def"]
    assert signatures["serving_default"]["inputs"].keys() == example.keys()
    assert "OpenVINO " in done.stderr and ", float32, " in done.stderr


@pytest.mark.parametrize("head", [CLASSIFIER, TOKENS])
@pytest.mark.parametrize("is_tpu", [False, True])
def test_devices_share_the_rows_of_a_batch(monkeypatch, is_tpu, head):
    """Also of fewer rows than devices; a TPU gets few static shapes."""
    monkeypatch.setattr(distribution, "is_tpu", lambda strategy: is_tpu)
    compute, traced = networks_lib.packed_outputs, []

    def trace(network, head, inputs, layer):
        traced.append(tuple(inputs["input_ids"].shape))
        return compute(network, head, inputs, layer)

    monkeypatch.setattr(networks_lib, "packed_outputs", trace)
    strategy = tiny.strategy_of(2)
    with strategy.scope():
        network = networks_lib.build(small.config(), head, 3, 7)
    parts = checkpoints.encoder_of(network), network.get_layer(head)
    alone, shared = KerasEngine(*parts), KerasEngine(*parts, strategy=strategy)
    traced.clear()
    rng = np.random.default_rng(5)
    for count in (1, 3, 4, 7, 61):
        sizes = rng.integers(2, small.S + 1, count)
        rows = [(rng.integers(5, small.V, n), np.zeros(n, int)) for n in sizes]
        expected, found = (
            sequence_packing.map_packed(engine, rows, head == CLASSIFIER)
            for engine in (alone, shared)
        )
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)
    if is_tpu:
        half = sequence_packing.MAX_TOKENS // 2
        assert {*traced} == {(half // 128, 128)}
    else:
        assert (None, None) in traced


@pytest.mark.parametrize("engine", ["keras", "openvino"])
def test_threads_share_an_engine(model, engine):
    predictor = Predictor.open(model, engine)
    expected = [predictor([x]) for x in examples_of(TEXTS)]
    with concurrent.futures.ThreadPoolExecutor(7) as pool:
        for _ in range(3):
            found = pool.map(lambda x: predictor([x]), examples_of(TEXTS))
            for (one,), (other,) in zip(found, expected, strict=True):
                assert one["label"] == other["label"]
                assert one["probabilities"] == pytest.approx(
                    other["probabilities"], abs=1e-6
                )


def test_an_engine_that_the_folder_lacks_is_named(model, tmp_path):
    without = shutil.ignore_patterns("openvino")
    folder = shutil.copytree(model, tmp_path / "model", ignore=without)
    message = "no OpenVINO network; export it again with --export_openvino"
    with pytest.raises(UserError, match=message):
        Predictor.open(str(folder), "openvino")
    assert isinstance(Predictor.open(str(folder))._engine, KerasEngine)
    network = Predictor.open(f"{model}/openvino")
    assert isinstance(network._engine, OpenVINOEngine)


@pytest.mark.parametrize(
    ("device", "packages", "hidden", "is_default"),
    [
        ("nvidia1", ["nvidia-cudnn-cu12"], None, False),
        ("nvidia1", ["nvidia-cudnn-cu12"], "0,1", False),
        ("nvidia1", ["nvidia-cudnn-cu12"], "-1", True),
        ("nvidia1", ["nvidia-cudnn-cu12"], "", True),
        ("nvidia1", [], None, True),
        ("nvidiactl", ["nvidia-cudnn-cu12"], None, True),
    ],
)
def test_openvino_is_the_default_unless_tensorflow_has_a_gpu(
    encoder, monkeypatch, tmp_path, device, packages, hidden, is_default
):
    monkeypatch.setattr(nvidia, "_FILES", str(tmp_path / "nvidia[0-9]*"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    if hidden is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    monkeypatch.syspath_prepend(tmp_path)
    for name in packages:
        record = tmp_path / f"{name.replace('-', '_')}-9.0.dist-info/METADATA"
        record.parent.mkdir()
        record.write_text(f"Name: {name}\nVersion: 9.0\n")
    (tmp_path / device).touch()
    network = f"{encoder}/openvino" if is_default else None
    assert openvino_engine.find_default(encoder) == network


@pytest.mark.parametrize("is_installed", [True, False])
def test_entry_points_use_the_default_engine(
    encoder, monkeypatch, tmp_path, run_script, hide_package, is_installed
):
    opened = []
    for module in (predictor_lib, embeddings, feature_extraction):

        def network(path, *num_threads):
            opened.append(path)
            return OpenVINOEngine(path, *num_threads)

        monkeypatch.setattr(module, "OpenVINOEngine", network)
    if not is_installed:
        hide_package("openvino")
    Predictor.open(encoder)
    bert.embed(["the cat"], encoder)
    (tmp_path / "lines.txt").write_text("the cat\n")
    code, _, err = run_script(
        extract_features,
        init_checkpoint=encoder,
        input_file=tmp_path / "lines.txt",
        output_file=tmp_path / "out.jsonl",
        layers="-1",
        max_seq_length=13,
    )
    assert code == 0, err
    assert len(opened) == (3 if is_installed else 0)


@pytest.mark.parametrize(("name", "layer"), [("model", -1), ("encoder", -2)])
def test_keras_computes_what_no_network_has(request, name, layer):
    """A network has the logits of its task, or the last layer."""
    folder = request.getfixturevalue(name)
    found = bert.embed(["the cat"], folder, layer=layer, max_length=13)
    keras = bert.load_encoder(folder)
    expected = bert.embed(["the cat"], keras, layer=layer, max_length=13)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("engine", ["keras", "openvino"])
@pytest.mark.parametrize(
    ("name", "row"),
    [("output_bias", 1), ("bert/embeddings/word_embeddings", -1)],
)
def test_a_model_that_is_trained_badly_is_refused(tmp_path, engine, name, row):
    """Also if its first prediction does not depend on the weight."""
    bert = classifier_of(tmp_path)
    bert.values[name][row] = np.inf
    with pytest.raises(UserError, match="not finite|NaN or infinite"):
        Predictor.open(write_networks(tmp_path, bert), engine)


def test_one_output_that_is_not_finite_is_refused(tmp_path):
    bert = classifier_of(tmp_path)

    def engine(_):
        return np.float32([[[0.0, np.nan, 0.0]]])

    predictor = Predictor(TextClassification.from_model(bert), engine)
    with pytest.raises(UserError, match="the outputs are not finite"):
        predictor.check(bert)


@pytest.mark.slow
def test_an_encoder_gives_vectors_without_tensorflow(tmp_path, run_script):
    """By bert.embed and extract_features.py."""
    source, folder = tmp_path / "source", tmp_path / "openvino"
    source.mkdir()
    write_model(source)
    words = {"input": source, "output": folder, "do_lower_case": True}
    code, _, err = run_script(convert_checkpoint, to="openvino", **words)
    assert code == 0, err
    lines, out = tmp_path / "lines.txt", tmp_path / "out.npy"
    lines.write_text("\n".join(TEXTS) + "\n")
    code = """
import numpy as np
import bert, extract_features
folder, lines, out = sys.argv[1:]
flags = [f"--init_checkpoint={folder}", f"--input_file={lines}", "--layers=-1"]
flags += [f"--output_file={out}", "--max_seq_length=13", "--pooling=cls"]
extract_features.main(["", *flags])
texts = open(lines, encoding="utf-8").read().split("\\n")[:-1]
vectors = bert.embed(texts, folder, pooling="max", max_length=13)
np.save(out, [vectors, np.load(out)])
"""
    without_tensorflow(code, folder, lines, out)
    model = bert.load_encoder(str(source))
    for pooling, found in zip(("max", "cls"), np.load(out)):
        expected = bert.embed(TEXTS, model, max_length=13, pooling=pooling)
        np.testing.assert_allclose(found, expected, atol=1e-5)

    # What the folder has not is told.
    for call, message in (
        (
            lambda: bert.embed("a", str(folder), layer=-2),
            "a network of OpenVINO",
        ),
        (lambda: bert.load_encoder(str(folder)), "a network of OpenVINO"),
        (
            lambda: Predictor.open(str(folder)),
            "no task is recorded: neither labels nor a pooling",
        ),
    ):
        with pytest.raises(UserError, match=message):
            call()
    words = {"init_checkpoint": folder, "input_file": lines}
    words |= {
        "output_file": tmp_path / "x.jsonl",
        "layers": "-1,-2",
        "max_seq_length": 13,
    }
    code, _, err = run_script(extract_features, **words)
    assert code == 2 and "--layers=-1,-2; expected -1, as an OpenVINO" in err


@pytest.mark.slow
@pytest.mark.parametrize(
    "precision", [pytest.param("bfloat16", marks=pytest.mark.long), "int8"]
)
def test_the_script_writes_a_network_and_its_scores(
    run_script, tmp_path_factory, tmp_path, precision
):
    made = trained.folder(tmp_path_factory, "pairs")
    shutil.copytree(made.run, tmp_path / "run")
    flags = {
        "task_name": "jsonl",
        "text_column": "text",
        "text_b_column": "text_b",
        "train_file": made.run.parent / "train.jsonl",
        "eval_file": made.run.parent / "train.jsonl",
        "output_dir": tmp_path / "run",
        "export_dir": tmp_path / "export",
        "export_openvino": precision,
    }
    code, _, err = run_script(run_classifier, "--do_eval", **flags)
    assert code == 0, err
    scores = (tmp_path / "export/assets.extra/metrics.json").read_text()
    scores = json.loads(scores)
    assert scores["openvino_accuracy"] == scores["eval_accuracy"]
    assert scores["openvino_changed_labels"] == 0
    assert "OpenVINO | accuracy " in err

    examples = [{"text": a, "text_b": b} for a, b in trained.PAIRS]
    found, expected = (
        Predictor.open(str(tmp_path / "export"), engine)(examples)
        for engine in ("openvino", "keras")
    )
    for row, other in zip(found, expected):
        assert row["label"] == other["label"]


def test_a_missing_package_is_named(run_script, hide_package, tmp_path):
    hide_package("openvino")
    (tmp_path / "openvino_model.xml").touch()
    code, _, err = run_script(predict, model=tmp_path)
    line = "missing packages: openvino; in the checkout: pip install -r "
    assert code == 2 and f"{line}requirements/openvino.txt\n" in err


def test_int8_has_packages_of_its_own(hide_package):
    hide_package("nncf")
    openvino_engine.check("float32", "--export_openvino", 0)
    message = "--export_openvino: missing packages: nncf; .*/int8.txt"
    with pytest.raises(UserError, match=message):
        openvino_engine.check("int8", "--export_openvino", 1)
