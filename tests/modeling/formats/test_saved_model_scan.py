"""Harmful and broken SavedModels are rejected without being loaded."""

import json
import pathlib
import pickle
import struct

import keras
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

import convert_checkpoint
from common.errors import UserError
from modeling import hub
from modeling.formats import conversion, saved_model_scan
from tests.helpers import lookup

SPEC = [tf.TensorSpec([None], tf.float32)]


class Table(tf.saved_model.experimental.TrackableResource):
    """A resource that runs a function when it is loaded."""

    def __init__(self, task):
        super().__init__()
        self.task = task

    def _create_resource(self):
        return tf.raw_ops.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)

    def _initialize(self):
        self.task(self.resource_handle)


def save(folder, call, table=None, **options):
    """Saves a model that calls a function of float32 [N]."""
    root = tf.train.Checkpoint(variable=tf.Variable([1.0, 2.0]))
    root.__call__ = tf.function(call, SPEC)
    if table is not None:
        root.table = table
        table.resource_handle  # noqa: B018 creates it
    options = tf.saved_model.SaveOptions(**options)
    tf.saved_model.save(root, str(folder), options=options)


def edit(folder, change):
    """Changes the proto."""
    path = pathlib.Path(folder) / "saved_model.pb"
    saved = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    change(saved.meta_graphs[0])
    path.write_bytes(saved.SerializeToString())


def write_in_call(folder, marker):
    def call(x):
        tf.io.write_file(marker, "here")
        return x

    save(folder, call)


def write_when_loaded(folder, marker):
    table = Table(lambda handle: tf.io.write_file(marker, "here"))
    save(folder, lambda x: x + 1.0, table)


def read_any_file(folder, marker):
    save(folder, lambda x: tf.strings.length(tf.io.read_file("/etc/passwd")))


def write_in_a_branch(folder, marker):
    def branch():
        tf.io.write_file(marker, "here")
        return 1.0

    save(folder, lambda x: tf.cond(x[0] > 0, branch, lambda: 2.0))


def save_in_call(folder, marker):
    def call(x):
        tf.raw_ops.SaveV2(
            prefix=marker,
            tensor_names=["x"],
            shape_and_slices=[""],
            tensors=[x],
        )
        return x

    save(folder, call)


def call_python(folder, marker):
    def write(x):
        pathlib.Path(marker).touch()
        return x

    save(folder, lambda x: tf.numpy_function(write, [x], tf.float32))


def print_to_a_file(folder, marker):
    def call(x):
        tf.print(x, output_stream=f"file://{marker}")
        return x

    save(folder, call)


def table_of_any_file(folder, marker):
    def read(handle):
        tf.raw_ops.InitializeTableFromTextFileV2(
            table_handle=handle,
            filename="/etc/passwd",
            key_index=-2,
            value_index=-1,
        )

    save(folder, lambda x: x, Table(read))


def good_table(folder, marker=None):
    (folder.parent / "vocab.txt").write_text("a\nb\n")
    table = lookup.text_file_table(folder.parent / "vocab.txt")
    root = tf.train.Checkpoint(table=table)
    strings = [tf.TensorSpec([None], tf.string)]
    root.__call__ = tf.function(table.lookup, strings)
    tf.saved_model.save(root, str(folder))


def asset_of_any_file(folder, marker):
    def change(meta):
        meta.asset_file_def[0].filename = "../../../../../etc/passwd"

    good_table(folder)
    edit(folder, change)


def write_in_a_gradient(folder, marker):
    @tf.custom_gradient
    def same(x):
        def gradient(upstream):
            tf.io.write_file(marker, "here")
            return upstream

        return tf.identity(x), gradient

    save(folder, same, experimental_custom_gradients=True)


def write_in_tensorflow_1(folder, marker):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        builder = tf.compat.v1.saved_model.Builder(str(folder))
        main = tf.io.write_file(marker, "here")
        builder.add_meta_graph_and_variables(session, ["serve"], main_op=main)
        builder.save()


def cut_the_graph(folder, marker):
    save(folder, lambda x: x)
    path = folder / "saved_model.pb"
    path.write_bytes(path.read_bytes()[:-99])


def claim_four_terabytes(folder, marker):
    def change(meta):
        tensor = meta.graph_def.node.add(name="c", op="Const").attr["value"]
        tensor.tensor.dtype = tf.float32.as_datatype_enum
        tensor.tensor.tensor_shape.dim.add(size=1 << 40)
        tensor.tensor.float_val.append(0.0)

    save(folder, lambda x: x)
    edit(folder, change)


def call_the_saver(folder, marker):
    """The function that saves variables becomes the call."""

    def change(meta):
        savers = [
            function.signature.name
            for function in meta.graph_def.library.function
            if any(node.op == "SaveV2" for node in function.node_def)
        ]
        for node in meta.object_graph_def.nodes:
            if node.WhichOneof("kind") == "function":
                node.function.concrete_functions[:] = savers

    save(folder, lambda x: x)
    edit(folder, change)


def cut_the_variables(folder, marker):
    save(folder, lambda x: x)
    path = folder / "variables" / "variables.index"
    path.write_bytes(path.read_bytes()[:20])


def code_in_a_keras_file(folder, marker):
    inputs = keras.Input((2,))
    code = keras.layers.Lambda(lambda x: (pathlib.Path(marker).touch(), x)[1])
    model = keras.Model(inputs, code(inputs))
    pathlib.Path(marker).unlink()  # building the model has run the code
    model.save(f"{folder}.keras")
    pathlib.Path(f"{folder}.keras").rename(folder)


BAD = {
    write_in_call: "WriteFile",
    write_when_loaded: "WriteFile",
    read_any_file: "ReadFile",
    write_in_a_branch: "WriteFile",
    save_in_call: "SaveV2",
    call_python: "PyFunc",
    print_to_a_file: "PrintV2",
    table_of_any_file: "InitializeTableFromTextFileV2",
    asset_of_any_file: "InitializeTableFromTextFileV2",
    write_in_a_gradient: "WriteFile",
    write_in_tensorflow_1: "expected a SavedModel of TensorFlow 2",
    cut_the_graph: "cannot be read",
    claim_four_terabytes: "a constant of .1099511627776.",
    call_the_saver: "SaveV2",
    cut_the_variables: "cannot be loaded",
    code_in_a_keras_file: "cannot be read",
}


@pytest.mark.parametrize("make", BAD, ids=lambda make: make.__name__)
def test_it_is_rejected_and_does_nothing(make, tmp_path):
    folder, marker = tmp_path / "model", tmp_path / "marker"
    make(folder, str(marker))
    for use in (hub.load, hub.HubEncoder):
        with pytest.raises(UserError, match=BAD[make]):
            use(str(folder), trust_model=True)
    with pytest.raises(UserError):  # there are no weights
        conversion.read_hub(str(folder), None)
    assert not list(tmp_path.glob("marker*"))


def test_there_are_sixteen():
    assert len(BAD) == 16


def test_tensorflow_itself_would_have_done_it(tmp_path):
    """The artefacts are live, so the test above can fail."""
    marker = tmp_path / "marker"
    write_when_loaded(tmp_path / "loaded", str(marker))
    tf.saved_model.load(str(tmp_path / "loaded"))
    assert marker.read_text() == "here"
    marker.unlink()
    write_in_a_gradient(tmp_path / "gradient", str(marker))
    loaded = tf.saved_model.load(str(tmp_path / "gradient"))
    x = tf.constant([1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loaded(x)
    assert not marker.exists()
    tape.gradient(y, x)
    assert marker.exists()


def test_a_table_from_an_asset_is_accepted(tmp_path):
    good_table(tmp_path / "model")
    found = saved_model_scan.scan(str(tmp_path / "model"))
    assert {"HashTableV2", "LookupTableFindV2"} < found
    loaded = hub.load(str(tmp_path / "model"), trust_model=True)
    assert loaded(tf.constant(["b", "c"])).numpy().tolist() == [1, -1]


@pytest.mark.parametrize("number", [-1, 10**6])
@pytest.mark.parametrize("what", ["input", "object", "asset"])
def test_a_table_of_what_is_not_there_is_rejected(tmp_path, what, number):
    def change(meta):
        if what == "asset":
            for node in meta.object_graph_def.nodes:
                if node.WhichOneof("kind") == "asset":
                    node.asset.asset_file_def_index = number
        for function in meta.graph_def.library.function:
            for node in function.node_def:
                if node.op != "InitializeTableFromTextFileV2":
                    continue
                name = function.signature.name
                bound = meta.object_graph_def.concrete_functions[name]
                if what == "input":
                    del node.input[1:]
                elif what == "object":
                    count = len(bound.bound_inputs)
                    bound.bound_inputs[:] = [number] * count

    good_table(tmp_path / "model")
    edit(tmp_path / "model", change)
    with pytest.raises(UserError, match="InitializeTableFromTextFileV2"):
        saved_model_scan.scan(str(tmp_path / "model"))


def test_a_handle_is_never_fetched(tmp_path):
    for handle in ("https://localhost/bert/1", str(tmp_path / "nothing")):
        with pytest.raises(UserError, match="cannot be read: .*No such file"):
            hub.load(handle, trust_model=True)


def test_a_keras_file_cannot_vouch_for_the_model_that_it_names(tmp_path):
    marker = tmp_path / "marker"
    write_when_loaded(tmp_path / "model", str(marker))
    for trusted in ({}, {"trust_model": True}):
        layer = {
            "module": None,
            "class_name": "HubEncoder",
            "registered_name": "bert>HubEncoder",
            "config": {"handle": str(tmp_path / "model"), **trusted},
        }
        with pytest.raises(Exception, match="trust_model"):
            keras.saving.deserialize_keras_object(layer)
    assert not marker.exists()


class Exploit:
    """Touches a file when it is unpickled."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return pathlib.Path.touch, (self.marker,)


def test_weights_that_are_programs_are_not_read(tmp_path, run_script):
    """Pickles of transformers, and headers that claim too large sizes."""
    marker = tmp_path / "marker"
    header = {"x": {"dtype": "F32", "shape": [1 << 40], "data_offsets": [0, 4]}}
    raw = json.dumps(header).encode()
    for name, content in (
        ("pytorch_model.bin", pickle.dumps(Exploit(marker))),
        ("model.safetensors", struct.pack("<Q", len(raw)) + raw + b"1234"),
        ("model.safetensors", struct.pack("<Q", 1 << 62) + raw),
    ):
        folder = tmp_path / f"model{len(content)}"
        folder.mkdir()
        (folder / name).write_bytes(content)
        (folder / "config.json").write_text(
            json.dumps({"model_type": "bert", "vocab_size": 31})
        )
        code, _, err = run_script(
            convert_checkpoint,
            **{"from": "huggingface", "input": folder, "to": "google"},
            output=tmp_path / "out",
        )
        assert code == 2, err
        assert err.count("\n") == 1
        assert not marker.exists()
        assert not (tmp_path / "out").exists()
