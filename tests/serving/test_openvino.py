"""Networks in OpenVINO: the answers of TensorFlow, without it."""

import concurrent.futures
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import numpy as np
import openvino
import pytest

import bert
import convert_checkpoint
import extract_features
import predict
import run_classifier
from bert.common.errors import UserError
from bert.data.label_kinds import (
    CLASSES,
    MULTI_LABEL,
    PLAIN,
    REGRESSION,
    Decision,
)
from bert.serving import (
    asking,
    graph_model,
    openvino_model,
    predict_settings,
)
from bert.serving.http import openvino_servable, rest
from bert.serving.http.settings import Settings
from tests.helpers import classifier_files
from tests.helpers.classifier_files import (
    rows_of,
    shared_export,
    write_export,
    write_model,
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
PAIRS = [[a, b] for a, b in zip(TEXTS, [*TEXTS[3:], "", "a", "tree " * 89])]
NAMES = ("no, never", "yes", "maybe")
DECISIONS = {CLASSES: Decision((4.17, 0.0, 0.0), (4.0, 0.0, 0.0), 1.2, 0.47)}


@pytest.fixture
def export(tmp_path_factory):
    return shared_export(tmp_path_factory)


def settings_of(folder, **changes):
    changes = {"model": str(folder), "trust_model": True} | changes
    return predict_settings.Settings(**changes)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "names", "pairs"),
    [
        (CLASSES, NAMES, True),
        (MULTI_LABEL, NAMES, False),
        (REGRESSION, (), False),
        pytest.param(CLASSES, NAMES, False, marks=pytest.mark.long),
        pytest.param(MULTI_LABEL, NAMES, True, marks=pytest.mark.long),
        pytest.param(REGRESSION, (), True, marks=pytest.mark.long),
    ],
)
def test_the_answers_are_those_of_the_saved_model(tmp_path, kind, names, pairs):
    decision = DECISIONS.get(kind, PLAIN)
    export = write_export(tmp_path, kind, names, pairs, "float32", decision)
    graph = graph_model.load(settings_of(export))
    network = openvino_model.load(settings_of(f"{export}/openvino"))
    assert network.inputs == graph.inputs
    rows = PAIRS if pairs else [[text] for text in TEXTS]
    found = asking.answer(network, rows, 19)
    if kind == CLASSES:
        _check_labels(found, decision)
    for row, expected in zip(found, asking.answer(graph, rows, 19)):
        assert row.keys() == expected.keys()
        assert row.get("label") == expected.get("label")
        for key in row.keys() - {"label"}:
            a, b = (
                list(x[key].values()) if kind != REGRESSION else x[key]
                for x in (row, expected)
            )
            np.testing.assert_allclose(a, b, atol=1e-5)
    columns = asking.columns_of(graph, rows)
    limit, tokens = network.count_tokens(columns)
    expected_limit, expected = graph.count_tokens(columns)
    assert limit == expected_limit == 13 and (tokens == expected).all()


def _check_labels(rows, decision):
    """By a threshold of the logits; null by the probability of that label."""
    chances = np.array([[*row["probabilities"].values()] for row in rows])
    logits = np.log(chances) * decision.temperature + decision.log_weights
    best = (logits - decision.cuts).argmax(-1)
    assert (best != chances.argmax(-1)).any()
    pairs = zip(best, chances[np.arange(len(best)), best])
    labels = [
        NAMES[i] if x >= decision.unknown_below else None for i, x in pairs
    ]
    assert [row["label"] for row in rows] == labels
    assert {None} < {*labels}


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


@pytest.mark.slow
def test_a_line_is_answered_without_tensorflow(export, tmp_path):
    """In a folder with a name that would be other things elsewhere."""
    folder = tmp_path / "-v %s 'é; {x}"
    shutil.copytree(f"{export}/openvino", folder)
    code = "import predict; sys.exit(predict.main(sys.argv))"
    done = without_tensorflow(code, f"--model={folder}", input="the cat\na\n")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    model = openvino_model.load(settings_of(folder))
    assert answers == asking.answer(model, [["the cat"], ["a"]], 2)
    assert "OpenVINO " in done.stderr and ", float32, " in done.stderr


@pytest.mark.slow
def test_requests_are_answered_without_tensorflow(export):
    code = """
from bert.serving.http import openvino_servable
from tests.helpers import http_server
settings = http_server.settings_of()
model = openvino_servable.Servable(sys.argv[1], settings, lambda _: None)
client = http_server.app_of(model).test_client()
body = {"instances": ["the cat", "a"]}
print(client.get("/v1/models/mails/metadata").text.replace("\\n", ""))
print(client.post("/v1/models/mails:predict", json=body).text)
"""
    folder = f"{export}/openvino"
    described, answer = without_tensorflow(code, folder).stdout.splitlines()
    assert '"DT_STRING"' in described and '"text"' in described
    model = openvino_model.load(settings_of(folder))
    expected = asking.answer(model, [["the cat"], ["a"]], 1)
    for row, other in zip(json.loads(answer)["predictions"], expected):
        assert row["label"] == other["label"]
        pairs = zip(row["label_names"], row["probabilities"], strict=True)
        assert dict(pairs) == pytest.approx(other["probabilities"], abs=1e-5)


@pytest.mark.slow
def test_threads_share_a_network(export):
    batches = []
    folder = f"{export}/openvino"
    limits = Settings(model="mails", max_batch_size=1, max_queued_batches=89)
    servable = openvino_servable.Servable(folder, limits, batches.append)

    def ask(text):
        texts = {"text": np.array([text.encode()], object)}
        return servable.call(rest.DEFAULT, texts)["probabilities"][0]

    expected = [ask(text) for text in TEXTS]
    with concurrent.futures.ThreadPoolExecutor(7) as pool:
        for _ in range(5):
            for one, other in zip(pool.map(ask, TEXTS), expected):
                np.testing.assert_allclose(one, other, atol=1e-6)
    assert [*map(len, batches)] == [1] * 6 * len(TEXTS)

    busy = Settings(model="mails", max_batch_size=1, max_queued_batches=1)
    servable = openvino_servable.Servable(folder, busy, batches.append)
    servable._places.acquire()
    with pytest.raises(rest.Busy):
        ask("the cat")

    # The time in the queue is that before the turn.
    servable._places.release()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        with servable._turn:
            answer = pool.submit(ask, "the cat")
            while servable._places.acquire(blocking=False):
                servable._places.release()
            turn = time.perf_counter()
        answer.result()
    assert batches[-1] < turn


@pytest.mark.slow
def test_vectors_are_those_of_the_encoder(tmp_path, run_script):
    """Of bert.embed and extract_features.py."""
    source, folder = tmp_path / "source", tmp_path / "openvino"
    source.mkdir()
    write_model(source)
    words = {"input": source, "output": folder, "do_lower_case": True}
    code, _, err = run_script(convert_checkpoint, to="openvino", **words)
    assert code == 0, err
    lines = tmp_path / "lines.txt"
    lines.write_text("\n".join(TEXTS) + "\n")
    code = """
import numpy as np
import bert, extract_features
folder, lines, out, vectors = sys.argv[1:]
flags = [f"--init_checkpoint={folder}", f"--input_file={lines}", "--layers=-1"]
flags += [f"--output_file={out}", "--output_format=npz", "--normalize"]
flags += ["--max_seq_length=13", "--pooling=mean"]
extract_features.main(["", *flags])
texts = open(lines, encoding="utf-8").read().split("\\n")[:-1]
both = [
    bert.embed(texts, folder, pooling=pooling, max_length=13)
    for pooling in ("max", "cls")
]
np.save(vectors, both)
"""
    out, vectors = tmp_path / "out.npz", tmp_path / "vectors.npy"
    without_tensorflow(code, folder, lines, out, vectors)
    model = bert.load_encoder(str(source))
    expected = bert.embed(TEXTS, model, max_length=13, normalize=True)
    found = np.load(out)["values"][:, 0]
    np.testing.assert_allclose(found, expected, atol=1e-5)
    for pooling, found in zip(("max", "cls"), np.load(vectors)):
        expected = bert.embed(TEXTS, model, max_length=13, pooling=pooling)
        np.testing.assert_allclose(found, expected, atol=1e-5)

    # What the folder has not is told.
    for call, message in (
        (lambda: bert.embed("a", str(folder), layer=-2), "layer=-2"),
        (lambda: bert.load_encoder(str(folder)), "a network of OpenVINO"),
        (
            lambda: openvino_model.load(settings_of(folder)),
            "the network gives neither labels",
        ),
    ):
        with pytest.raises(UserError, match=message):
            call()
    words = {"init_checkpoint": folder, "input_file": lines}
    words |= {
        "output_file": tmp_path / "x",
        "layers": "-1,-2",
        "max_seq_length": 13,
    }
    code, _, err = run_script(extract_features, **words)
    assert code == 2 and "--layers=-1,-2; expected -1: a network of" in err


@pytest.mark.slow
@pytest.mark.parametrize(
    "precision", [pytest.param("bfloat16", marks=pytest.mark.long), "int8"]
)
def test_the_script_writes_a_network_and_its_scores(
    run_script, tmp_path, precision
):
    write_model(tmp_path)
    classifier_files.write_task(tmp_path)
    named = classifier_files.flags_of(tmp_path)
    named |= {"output_dir": tmp_path / "run", "export_dir": tmp_path / "export"}
    words = ("--do_train", "--do_eval", f"--export_openvino={precision}")
    code, _, err = run_script(run_classifier, *words, **named)
    assert code == 0, err
    scores = (tmp_path / "export/assets.extra/metrics.json").read_text()
    scores = json.loads(scores)
    assert scores["openvino_accuracy"] == scores["eval_accuracy"]
    assert scores["openvino_changed_labels"] == 0
    assert f"OpenVINO, {precision} | {tmp_path / 'dev.tsv'} | accuracy " in err

    folder = tmp_path / "export/openvino"
    network = openvino.Core().read_model(folder / "openvino_model.xml")
    operations = {x.get_type_name() for x in network.get_ops()}
    assert ("FakeQuantize" in operations) == (precision == "int8")
    size = (folder / "openvino_model.bin").stat().st_size
    floats = (tmp_path / "bert_model.ckpt.data-00000-of-00001").stat().st_size
    assert size < 0.6 * floats
    rows = [row[3:] for row in rows_of(tmp_path / "dev.tsv")[1:]]
    model = openvino_model.load(settings_of(folder))
    expected = asking.answer(
        graph_model.load(settings_of(tmp_path / "export")), rows, 19
    )
    for row, other in zip(asking.answer(model, rows, 19), expected):
        assert row["label"] == other["label"]


def truncate(folder, name):
    os.truncate(folder / name, 97)


def remove(folder, name):
    os.remove(folder / name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "name", "message"),
    [
        (truncate, "openvino_model.xml", "cannot be loaded: "),
        (truncate, "openvino_model.bin", "Incorrect weights in bin file!"),
        (remove, "openvino_model.bin", "no such file; copy it, too"),
        (remove, "task.json", "no such file; copy it, too"),
    ],
)
def test_a_damaged_folder_is_one_line(export, tmp_path, change, name, message):
    folder = tmp_path / "model"
    shutil.copytree(f"{export}/openvino", folder)
    change(folder, name)
    with pytest.raises(UserError, match=message) as error:
        openvino_model.load(settings_of(folder))
    assert "\n" not in str(error.value) and str(folder) in str(error.value)


def test_a_missing_package_is_named(run_script, hide_package, tmp_path):
    hide_package("openvino")
    (tmp_path / "openvino_model.xml").touch()
    code, _, err = run_script(predict, model=tmp_path)
    line = "missing packages: openvino; in the checkout: pip install -r "
    assert code == 2 and f"{line}requirements/openvino.txt\n" in err
