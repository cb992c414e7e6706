"""Weights and sizes of a BERT in a SavedModel, without loading its graph.

Loading a graph can run code. Reading variables and a protobuf cannot.
"""

import math
import os
from collections.abc import Iterator

import numpy as np
import tensorflow as tf
from google.protobuf import message
from tensorflow.core.protobuf import saved_model_pb2

from bert.common import storage
from bert.common.errors import UserError
from bert.common.formats import json_files, tensor_files
from bert.data.text.casing import Casing
from bert.modeling import checkpoints
from bert.modeling.config import BertConfig
from bert.modeling.formats import model_garden

_WEIGHTS = "weights/"  # attribute of `saved_model.FineTunedModel`
_OF_GELU = 0.044715  # constant of its tanh form (arXiv:1606.08415)


def read(folder: str) -> tuple[dict[str, np.ndarray], list[str]]:
    """Reads the weights of a SavedModel; see `model_garden.read`."""
    return model_garden.read(variables_of(folder))


def read_export(folder: str) -> tuple[dict[str, np.ndarray], list[str]]:
    """Reads the weights of an export of a fine-tuned model.

    Args:
        folder: str. Folder of the SavedModel.

    Returns:
        Original name -> float32 array, and an empty list.

    Raises:
        UserError: the export is damaged, or from an earlier version.
    """
    path, values = variables_of(folder), {}
    with checkpoints.reported(path):
        for key, value in tensor_files.stream(path):
            if key.startswith(_WEIGHTS):
                name = key.removeprefix(_WEIGHTS)
                name = name.removesuffix(model_garden.KEY_END)
                name = name.replace(".S", "/").replace("..", ".")
                values[name] = np.asarray(value, np.float32)
    if not values:
        raise UserError(
            "no weights by name",
            path=folder,
            expected="an export of this version",
            fix="export the model again with --export_dir",
        )
    return values, []


def read_config(folder: str) -> BertConfig:
    """Infers the sizes of a BERT from its variables and its graph.

    The activation follows from the operations of the graph. Dropout rates,
    which are only needed in training, are the defaults.

    Args:
        folder: str. Folder of the SavedModel.

    Raises:
        UserError: the SavedModel is damaged, or does not contain a BERT.
    """
    shapes = model_garden.shapes_of(variables_of(folder))
    sizes = checkpoints.sizes_of(shapes)
    queries = shapes.get("bert/encoder/layer_0/attention/self/query/kernel")
    if len(sizes) < 6 or not queries:
        raise UserError(
            f"holds {checkpoints.first_of(sorted(shapes)) or 'nothing known'}",
            path=folder,
            expected="a BERT",
            fix="if an earlier version exported it, export it again with "
            "--export_dir",
        )

    # Shape [H, A, D]. For [H, H], assume D = 64 as in all published models.
    heads = max(1, sizes["hidden_size"] // 64)
    sizes["num_attention_heads"] = queries[1] if len(queries) == 3 else heads
    activation = _activation(folder)
    with json_files.reported(folder, expected="a BERT"):
        return BertConfig.from_dict({**sizes, "hidden_act": activation})


def variables_of(folder: str) -> str:
    """Returns the prefix of the variables of a SavedModel.

    Args:
        folder: str. Folder of the SavedModel.

    Raises:
        UserError: the folder is not a SavedModel.
    """
    for part in ("saved_model.pb", "variables/variables.index"):
        if not storage.is_file(os.path.join(folder, part)):
            raise UserError(
                f"no {part}", path=folder, expected="a SavedModel's folder"
            )
    return os.path.join(folder, "variables", "variables")


def read_casing(folder: str) -> Casing:
    """Reads `do_lower_case` and `strip_accents`, if they are variables.

    Args:
        folder: str. Folder of the SavedModel.

    Returns:
        Casing with the values, or None for a missing variable.
    """
    path = variables_of(folder)
    reader = tensor_files.open_reader(path)

    values = {}
    for name in ("do_lower_case", "strip_accents"):
        key = f"{name}{model_garden.KEY_END}"
        if not reader.has_tensor(key):
            continue
        value = reader.get_tensor(key)
        if getattr(value, "shape", ()) != ():
            raise UserError(
                f"{name} has the shape {list(value.shape)}",
                path=path,
                expected="one value",
            )
        values[name] = bool(value)

    return Casing(**values)


def read_proto(folder: str) -> saved_model_pb2.SavedModel:
    """Parses the graph of a SavedModel without loading it.

    Args:
        folder: str. Folder of the SavedModel.

    Raises:
        UserError: the file is missing or damaged.
    """
    path = os.path.join(folder, "saved_model.pb")
    try:
        with storage.open_file(path, "rb") as file:
            return saved_model_pb2.SavedModel.FromString(file.read())
    except (OSError, message.DecodeError) as error:
        raise UserError(f"cannot be read: {error}", path=path) from None


def _activation(folder: str) -> str:
    """Activation that the operations of the graph compute.

    Raises:
        UserError: the graph has neither GELU nor ReLU. Tanh is not recognized,
            since every pooler has one.
    """
    graphs = read_proto(folder).meta_graphs
    operations = [node for graph in graphs for node in nodes(graph)]
    used = {node.op for node in operations}

    # GELU is not one operation: one form has erf, the other a constant.
    if used & {"Erf", "Erfc"}:
        return "gelu_erf"
    if "Relu" in used:
        return "relu"
    if any(
        math.isclose(x, _OF_GELU, rel_tol=0.01) for x in _scalars(operations)
    ):
        return "gelu"

    raise UserError(
        "an unknown activation",
        path=folder,
        expected="GELU or ReLU",
        fix="pass --bert_config_file, or convert its checkpoint",
    )


def _scalars(operations: list) -> Iterator[float]:
    """Yields the scalar float constants."""
    for node in operations:
        if node.op != "Const":
            continue
        tensor = node.attr["value"].tensor
        is_float = tf.as_dtype(tensor.dtype).is_floating
        if is_float and not tensor.tensor_shape.dim:
            yield float(tf.make_ndarray(tensor))


def nodes(meta) -> Iterator:
    """Yields the nodes of a meta graph and of its functions."""
    yield from meta.graph_def.node
    for function in meta.graph_def.library.function:
        yield from function.node_def
