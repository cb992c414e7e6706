"""Scan of the operations of a SavedModel, from its proto alone.

A graph builds its tables when it is loaded and runs when it is called; either
can write files. So its operations are compared with those that BERTs need,
which only compute.

Three kinds of operations touch files in every SavedModel. Variables are saved
and restored by functions that only TensorFlow's saver calls, and a table is
read from an asset of the model.
"""

import os

from bert.checks import checkpoint_index
from bert.common import storage
from bert.common.errors import UserError
from bert.common.findings import Finding, fine, suspicious, wrong
from bert.modeling.formats import saved_models
from bert.serving import known_exports

_TABLE = "InitializeTableFromTextFileV2"  # its file may be any
# Of TensorFlow Text.
TEXT = frozenset(
    "CaseFoldUTF8 FastBertNormalize FastWordpieceTokenizeWithOffsets "
    "NormalizeUTF8 NormalizeUTF8WithOffsetsMap RegexSplitWithOffsets "
    "TFText>RoundRobinTrim WordpieceTokenizeWithOffsets".split()
)
_COMPUTE = frozenset(
    "AddN AddV2 All Any ArgMax AsString Assert BatchMatMulV2 BiasAdd "
    "Bitcast BitwiseAnd BitwiseXor BroadcastArgs BroadcastTo Cast ConcatV2 "
    "Const Cumsum Einsum Equal Erf Erfc Exp ExpandDims Fill FloorDiv "
    "FloorMod GatherNd GatherV2 Greater GreaterEqual HashTableV2 Identity "
    "IdentityN If InvertPermutation Less LessEqual Log LogSoftmax "
    "LogicalAnd LogicalNot LogicalOr LookupTableFindV2 LookupTableSizeV2 "
    "LowerBound MatMul MatrixBandPart Max Maximum Mean Min Minimum Mul Neg "
    "NoOp NotEqual OneHot OnesLike Pack Pad PadV2 ParseExampleV2 "
    "PartitionedCall Pow Prod RaggedGather RaggedRange RaggedTensorToTensor "
    "RandomUniform RandomUniformInt Range Rank ReadVariableOp RealDiv Relu "
    "Reshape ResourceGather RightShift Rsqrt ScatterNd SegmentMax "
    "SegmentMean SegmentMin Select SelectV2 Shape Sigmoid Size Slice "
    "Softmax Split Sqrt Square SquaredDifference Squeeze "
    "StatefulPartitionedCall StatelessIf StatelessRandomGetKeyCounter "
    "StatelessRandomUniformFullIntV2 StatelessRandomUniformV2 "
    "StatelessWhile StaticRegexFullMatch StaticRegexReplace StopGradient "
    "StridedSlice StringJoin StringLength StringLower StringStrip Sub "
    "Substr Sum Tanh TensorListConcatV2 TensorListFromTensor "
    "TensorListGetItem TensorListReserve TensorListSetItem TensorListStack "
    "TensorScatterAdd TensorScatterUpdate Tile TopKV2 Transpose "
    "UnicodeDecode UnicodeDecodeWithOffsets UnicodeEncode Unique Unpack "
    "UnsortedSegmentJoin UnsortedSegmentMax UnsortedSegmentMin "
    "UnsortedSegmentSum UpperBound Where While ZerosLike".split()
)
# In the graph outside of functions, and in the saver's functions.
_STORE = frozenset(
    "Assign AssignVariableOp DisableCopyOnRead MergeV2Checkpoints Placeholder "
    "RestoreV2 SaveV2 ShardedFilename VarHandleOp VarIsInitializedOp".split()
)


def examine(folder: str) -> list[Finding]:
    """Checks a SavedModel without loading it: its graph and its variables."""
    prefix = os.path.join(folder, "variables", "variables")
    try:
        operations = scan(folder)
        checkpoint_index.check(prefix)
    except (UserError, OSError) as error:
        return [wrong(str(storage.as_user_error(error) or error))]
    except ValueError as error:
        return [wrong(f"cannot be read: {error}", path=prefix)]
    text = f"{len(operations)} kinds of operations, which only compute"
    found = [fine(text, path=folder)]
    lite = os.path.join(folder, known_exports.LITE)
    if storage.exists(lite) and not known_exports.is_known(folder):
        text = "not examined: it may hold any operation"
        fix = "remove it: the SavedModel answers without it"
        found.append(suspicious(text, path=lite, fix=fix))
    return found


def scan(folder: str) -> frozenset[str]:
    """Rejects a SavedModel whose graph could do more than compute.

    Args:
        folder: folder of the SavedModel.

    Returns:
        names of its operations.

    Raises:
        UserError: it has operations that BERTs do not need, has the format
            of TensorFlow 1, or is damaged.
    """
    path = os.path.join(folder, "saved_model.pb")
    _check_files(folder)
    saved = saved_models.read_proto(folder)
    if len(saved.meta_graphs) != 1 or not saved.meta_graphs[0].HasField(
        "object_graph_def"
    ):
        raise UserError(
            "not one graph with objects",
            path=path,
            expected="a SavedModel of TensorFlow 2",
            fix="convert_checkpoint.py reads the weights of "
            "a TensorFlow 1 module",
        )
    meta = saved.meta_graphs[0]
    functions = {f.signature.name: f for f in meta.graph_def.library.function}
    outside = _only_for_the_saver(meta)
    others = {
        node.op: "the graph"
        for node in meta.graph_def.node
        if node.op not in _COMPUTE | _STORE | TEXT | functions.keys()
    }
    for name, function in functions.items():
        allowed = _COMPUTE | TEXT | (_STORE if name in outside else set())
        for node in function.node_def:
            of_asset = node.op == _TABLE and _reads_an_asset(meta, name, node)
            if not of_asset and node.op not in allowed | functions.keys():
                others[node.op] = name
    if others:
        names = [f"{op!a} (in {name!a})" for op, name in sorted(others.items())]
        raise UserError(
            f"operations that are not allowed: {', '.join(names[:5])}",
            path=path,
            fix="convert_checkpoint.py reads the weights only",
        )
    return frozenset(node.op for node in saved_models.nodes(meta))


def _called(node) -> set[str]:
    """Names of the functions that a node may call."""
    names = {node.op}
    for value in node.attr.values():
        names |= {value.func.name, *(f.name for f in value.list.func)}
    return names


def _only_for_the_saver(meta) -> set[str]:
    """Names of the functions that only the saver calls.

    TensorFlow's loader does not call them: it reads the variables itself.
    """
    library, objects = meta.graph_def.library, meta.object_graph_def
    saver = {
        meta.saver_def.save_tensor_name.partition(":")[0],
        meta.saver_def.restore_op_name,
    }
    names, others = set(), set(objects.concrete_functions)
    for node in meta.graph_def.node:
        (names if node.name in saver else others).update(_called(node))
    for function in library.function:
        for node in function.node_def:
            others |= _called(node)
    for node in objects.nodes:
        others |= {node.bare_concrete_function.concrete_function_name}
        others |= set(node.function.concrete_functions)
    others |= {g.gradient_func for g in library.gradient}
    others |= {g.gradient_func for g in library.registered_gradients}
    return names - others


def _reads_an_asset(meta, name: str, node) -> bool:
    """Whether a table is read from an asset, not from any other file.

    Args:
        meta: the graph.
        name: name of the function that contains the node.
        node: the node that reads the table.
    """
    objects, library = meta.object_graph_def, meta.graph_def.library.function
    inner = (other for function in library for other in function.node_def)
    if name not in objects.concrete_functions or any(
        name in _called(other) for other in inner
    ):
        return False
    function = next(f for f in library if f.signature.name == name)
    arguments = [argument.name for argument in function.signature.input_arg]
    bound = list(objects.concrete_functions[name].bound_inputs)
    source = _at(node.input, 1)
    if len(bound) != len(arguments) or source not in arguments:
        return False  # the caller or the graph chooses the file
    owner = _at(objects.nodes, bound[arguments.index(source)])
    if owner is None or owner.WhichOneof("kind") != "asset":
        return False
    asset = _at(meta.asset_file_def, owner.asset.asset_file_def_index)
    file = asset.filename if asset else ""
    return bool(file.strip(".")) and os.path.basename(file) == file


def _at(values, index: int):
    """An element of a repeated field; None if there is none at the index."""
    return values[index] if 0 <= index < len(values) else None


def _check_files(folder: str) -> None:
    """Rejects what leads out of the folder, or may have no end.

    TensorFlow would follow a link of an asset, or wait for a pipe.
    """
    inside = os.path.realpath(folder)
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(parent, name)
            if os.path.commonpath([inside, os.path.realpath(path)]) != inside:
                raise UserError(
                    "leads out of the folder of the model",
                    path=path,
                    expected="a file",
                    fix="copy what it leads to, if you trust it",
                )
            storage.regular(path)
