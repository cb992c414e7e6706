"""The doctor finds harmful and broken SavedModels without loading them."""

import pathlib
import re

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from bert.checks import saved_model_scan
from bert.common.errors import UserError
from bert.modeling.formats.model_folder import ModelFolder

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
    path = folder.parent / "vocab.txt"
    path.write_text("a\nb\n")
    numbers = tf.lookup.TextFileIndex
    lines = tf.lookup.TextFileInitializer(
        str(path),
        tf.string,
        numbers.WHOLE_LINE,
        tf.int64,
        numbers.LINE_NUMBER,
    )
    table = tf.lookup.StaticHashTable(lines, -1)
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
    call_the_saver: "SaveV2",
    cut_the_variables: "not an index of a checkpoint",
}


@pytest.mark.parametrize("make", BAD, ids=lambda make: make.__name__)
def test_the_doctor_says_so_and_does_nothing(make, tmp_path):
    folder, marker = tmp_path / "model", tmp_path / "marker"
    make(folder, str(marker))
    (finding,) = saved_model_scan.examine(str(folder))
    assert finding.level == "wrong"
    assert re.search(BAD[make], finding.message)
    with pytest.raises(UserError):  # there are no weights
        _ = ModelFolder.open(str(folder)).config
    assert not list(tmp_path.glob("marker*"))


def test_tensorflow_itself_would_have_done_it(tmp_path):
    """The files are live, so the test above can fail."""
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
    operations = saved_model_scan.scan(str(tmp_path / "model"))
    assert {"HashTableV2", "LookupTableFindV2"} < operations
    (finding,) = saved_model_scan.examine(str(tmp_path / "model"))
    assert finding.level == "fine"
    lite = tmp_path / "model" / "assets.extra" / "model.tflite"
    lite.parent.mkdir()
    lite.touch()
    findings = saved_model_scan.examine(str(tmp_path / "model"))
    assert [x.level for x in findings] == ["fine", "suspicious"]


def test_a_table_of_what_is_not_there_is_rejected(tmp_path):
    def change(meta):
        for node in meta.object_graph_def.nodes:
            if node.WhichOneof("kind") == "asset":
                node.asset.asset_file_def_index = -1

    good_table(tmp_path / "model")
    edit(tmp_path / "model", change)
    with pytest.raises(UserError, match="InitializeTableFromTextFileV2"):
        saved_model_scan.scan(str(tmp_path / "model"))
