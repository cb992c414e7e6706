"""Bodies of TF Serving's REST API: JSON <-> tensors of a signature.

    {"instances": [{"text": "a"}, {"text": "b"}]}  by row; the name of the only
    {"instances": ["a", "b"]}                      input may be omitted
    {"inputs": {"text": ["a", "b"]}}               by column

Strings are text, or bytes as {"b64": "..."}. "signature_name" is optional.
"""

import base64
import dataclasses
import json

import numpy as np
import tensorflow as tf

from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.modeling.formats import saved_models
from bert.serving import asking

DEFAULT = "serving_default"
_ANSWERS = {"instances": "predictions", "inputs": "outputs"}  # form -> key
_BYTES = {"b64"}
_DIMENSIONS = 254  # TensorFlow ends the process at more


@dataclasses.dataclass(frozen=True)
class Request:
    """A parsed request.

    Attributes:
        signature: the signature to call.
        tensors: name -> tensor [b, ...] of each input.
        form: "instances" or "inputs".
        size: b.
    """

    signature: str
    tensors: dict[str, tf.Tensor]
    form: str
    size: int


def read_signatures(folder: str) -> dict[str, dict[str, tf.TensorSpec]]:
    """Reads the signatures of a SavedModel, without loading its graph.

    Args:
        folder: folder of the SavedModel.

    Returns:
        name -> specs of the inputs by name.
    """
    (meta,) = saved_models.read_proto(folder).meta_graphs
    return signatures_of(meta)


def signatures_of(meta) -> dict[str, dict[str, tf.TensorSpec]]:
    """The signatures of a MetaGraphDef, as for `read_signatures`."""
    return {
        name: {
            key: tf.TensorSpec(tf.TensorShape(x.tensor_shape), x.dtype)
            for key, x in signature.inputs.items()
        }
        for name, signature in meta.signature_def.items()
        if signature.inputs
    }


def parse(body: bytes, signatures: dict[str, dict]) -> Request:
    """Parses the body of a request.

    Args:
        body: JSON.
        signatures: name -> specs of the inputs by name.

    Raises:
        UserError: it does not fit a signature.
    """
    with json_files.reported():
        values = json_files.decode(body)
    forms = [x for x in _ANSWERS if isinstance(values, dict) and x in values]
    if len(forms) != 1:
        expected = 'an object with "instances" or "inputs"'
        raise UserError("no request", expected=expected)

    name = values.get("signature_name", "")
    name = DEFAULT if name == "" else name  # as for TF Serving
    if not isinstance(name, str) or name not in signatures:
        expected = f"one of {', '.join(signatures)}"
        raise UserError(f"signature_name {name!r:.60}", expected=expected)

    # Rows become columns: {"text": [...]}.
    specs, columns = signatures[name], values[forms[0]]
    if forms == ["instances"]:
        if not isinstance(columns, list):
            kind = type(columns).__name__
            raise UserError(f"instances is a {kind}", expected="a list")
        rows = [_named(row, specs) for row in columns]
        columns = {key: [row[key] for row in rows] for key in specs}
    columns = _named(columns, specs)

    tensors = {k: _tensor(columns[k], spec, k) for k, spec in specs.items()}
    sizes = {len(x) for x in tensors.values() if x.shape.rank}
    if len(sizes) != 1 or 0 in sizes:
        raise UserError(
            f"{' and '.join(map(str, sorted(sizes)))} examples",
            expected="at least one, and the same number in each input",
        )
    return Request(name, tensors, forms[0], *sizes)


def _named(value, specs: dict) -> dict:
    """Adds the name of the only input to a value without it."""
    is_dict = isinstance(value, dict) and value.keys() != _BYTES
    if len(specs) == 1 and not is_dict:
        return dict.fromkeys(specs, value)
    if not is_dict or value.keys() != specs.keys():
        names = ", ".join(value) if is_dict else value
        raise UserError(f"inputs {names!r:.60}", expected=", ".join(specs))
    return value


def _depth(value) -> int:
    depth = 0
    while isinstance(value, list):
        depth, value = depth + 1, value[0] if value else None
    return depth


def _tensor(value, spec: tf.TensorSpec, name: str) -> tf.Tensor:
    try:
        if _depth(value) > _DIMENSIONS:
            raise ValueError
        tensor = tf.constant(_decoded(value, spec.dtype), spec.dtype)
        if spec.shape.is_compatible_with(tensor.shape):
            return tensor
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass  # another type, or lists of different lengths

    expected = f"{spec.dtype.name} of shape {spec.shape}"
    raise UserError(f"{name} is {value!r:.60}", expected=expected)


def _decoded(value, dtype: tf.DType):
    if isinstance(value, list):
        return [_decoded(x, dtype) for x in value]
    if isinstance(value, dict) and value.keys() == _BYTES:
        return base64.b64decode(value["b64"], validate=True)

    # TensorFlow takes true for 1, and large integers modulo 2^32.
    if isinstance(value, bool) != dtype.is_bool or (
        dtype.is_integer and not dtype.min <= value <= dtype.max
    ):
        raise ValueError
    return value


def to_json(outputs: dict[str, np.ndarray], form: str) -> str:
    """Formats the answer to a request.

    Args:
        outputs: name -> array [b, ...].
        form: of the request.

    Raises:
        ValueError: a number is not finite.
    """
    values = {k: v.tolist() for k, v in _trimmed(outputs).items()}
    if "label_names" in values and outputs["label"].ndim == 2:
        # Of several labels, without the padding.
        values["label"] = [[x for x in row if x] for row in values["label"]]

    # The name of the only output is omitted.
    answer = values
    if len(values) == 1:
        (answer,) = values.values()
    elif form == "instances":
        rows = zip(*values.values(), strict=True)
        answer = [dict(zip(values, row)) for row in rows]
    body = {_ANSWERS[form]: answer}
    return json.dumps(body, default=_text, allow_nan=False)


def _trimmed(outputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Removes the padding to longer lists of other requests of the batch."""
    outputs = dict(outputs)
    for parts in asking.LISTS.values():
        if parts.keys() <= outputs.keys():
            longest = (outputs[next(iter(parts))] != b"").sum(-1).max()
            outputs |= {name: outputs[name][:, :longest] for name in parts}
    return outputs


def _text(value: bytes) -> str | dict:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode()}
