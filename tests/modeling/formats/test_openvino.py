"""A network of OpenVINO: the outputs of Keras, without TensorFlow."""

import json
import os
import platform
import subprocess
import sys

import numpy as np
import openvino
import pytest

from bert.data import sequence_packing
from bert.modeling import encoder, networks
from bert.modeling.config import ACTIVATIONS
from bert.modeling.engines import openvino_engine
from bert.modeling.engines.keras_engine import KerasEngine
from bert.modeling.formats import openvino as writer
from bert.modeling.formats.model import Model
from bert.modeling.task_heads import CLASSIFIER, HEADS, TOKENS
from tests.helpers import model_files, small

CLASSES = {"classifier": 3, "squad": 2, "ner": 7, "swag": 1}


def model_of(head, **changes):
    """Config and random weights of an encoder with a head, or without."""
    config = small.config(**changes)
    network = encoder.build_encoder(config)
    if head:
        network = networks.build(config, head, CLASSES[head])
    return config, model_files.random_values(network, 0.3)


def sequences_of(count):
    rng = np.random.default_rng(count)
    return [
        (rng.integers(1, small.V, n).tolist(), rng.integers(0, 2, n).tolist())
        for n in rng.integers(1, small.POSITIONS + 1, count)
    ]


def outputs_of(engine, head, sequences):
    is_pooled = head is not None and HEADS[head].is_pooled
    return sequence_packing.map_packed(engine, sequences, is_pooled)


def keras_outputs(config, values, head, sequences):
    engine = KerasEngine.load(Model("model", config, values), head)
    return outputs_of(engine, head, sequences)


@pytest.mark.parametrize(
    ("head", "changes"),
    [
        *((head, {}) for head in (*CLASSES, None)),
        *((CLASSIFIER, {"hidden_act": name}) for name in ACTIVATIONS),
        (TOKENS, {"num_hidden_layers": 1}),
        (CLASSIFIER, {"num_hidden_layers": 1}),
    ],
)
def test_outputs_are_those_of_keras(tmp_path, head, changes):
    config, values = model_of(head, **changes)
    writer.write(str(tmp_path), config, values)
    network = openvino_engine.OpenVINOEngine(str(tmp_path))
    sequences = sequences_of(31)
    found = outputs_of(network, head, sequences)
    expected = keras_outputs(config, values, head, sequences)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == np.float32
        scale = max(1.0, abs(other).max())
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-5 * scale)


@pytest.mark.parametrize(
    ("precision", "head"),
    [
        ("bfloat16", None),
        pytest.param("int8", CLASSIFIER, marks=pytest.mark.slow),
    ],
)
def test_a_smaller_network_has_similar_outputs(
    tmp_path, precision, head, monkeypatch
):
    config, values = model_of(head)
    sequences = sequences_of(31)
    batches = [sequence_packing.pack([x]).inputs for x in sequences]
    writer.write(str(tmp_path), config, values, precision, batches)
    size = os.path.getsize(tmp_path / openvino_engine.WEIGHTS)
    assert size < 0.65 * sum(x.nbytes for x in values.values())
    file = tmp_path / openvino_engine.FILE
    operations = openvino.Core().read_model(file).get_ops()
    kinds = {x.get_type_name() for x in operations}
    assert ("FakeQuantize" in kinds) == (precision == "int8")
    types = {x.get_element_type() for x in operations}
    assert (openvino.Type.f16 in types) == (precision == "bfloat16")

    network = openvino_engine.OpenVINOEngine(str(tmp_path))
    assert f", {precision}, " in network.description
    found = [outputs_of(network, head, sequences)]
    if precision == "int8":
        found.append(outputs_without_vnni(tmp_path, sequences))
        monkeypatch.setattr(platform, "machine", lambda: "aarch64")
        network = openvino_engine.OpenVINOEngine(str(tmp_path))
        assert "u8" not in types_in(network)
        found.append(outputs_of(network, head, sequences))
    expected = np.concatenate(keras_outputs(config, values, head, sequences))
    for outputs in map(np.concatenate, found):
        assert abs(outputs - expected).mean() < 0.03 * expected.std()


OUTPUTS = """
import json, sys
from bert.data import sequence_packing
from bert.modeling.engines.openvino_engine import OpenVINOEngine
network, sequences = OpenVINOEngine(sys.argv[1]), json.load(sys.stdin)
found = sequence_packing.map_packed(network, sequences, True)
print(json.dumps([x.tolist() for x in found]))
"""


def outputs_without_vnni(folder, sequences):
    """Outputs of a CPU whose sums of 8-bit products saturate."""
    done = subprocess.run(
        [sys.executable, "-c", OUTPUTS, str(folder)],
        env=os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"},
        input=json.dumps(sequences),
        capture_output=True,
        check=True,
        text=True,
    )
    return json.loads(done.stdout)


def types_in(network):
    """Types of the compiled operations: u8 only for activations."""
    model = network._request.get_compiled_model().get_runtime_model()
    infos = [operation.get_rt_info() for operation in model.get_ops()]
    return {info["runtimePrecision"].astype(str) for info in infos}
