"""Bodies of TF Serving's REST API: JSON <-> arrays of a signature.

    {"instances": [{"text": "a"}, {"text": "b"}]}  by row; the name of the only
    {"instances": ["a", "b"]}                      input may be omitted
    {"inputs": {"text": ["a", "b"]}}               by column
    {"instances": [{"text": "a", "texts": ["b", "c"]}]}  see `ranking`

Strings are text, or bytes as {"b64": "..."}. "signature_name" is optional.
"""

import base64
import dataclasses
import json
from typing import NamedTuple

import msgspec
import numpy as np

from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.serving import asking, ranking

DEFAULT = "serving_default"
_ANSWERS = {"instances": "predictions", "inputs": "outputs"}  # form -> key
_BYTES = {"b64"}
_TYPES = {"O": bytes, "b": bool, "i": int, "u": int}  # kind of a dtype -> ours


class Busy(Exception):
    """The queue of the model is full."""


class Spec(NamedTuple):
    """What an input takes.

    dtype: its dtype; object for strings.
    shape: its sizes, None for any; None: any rank.
    """

    dtype: np.dtype
    shape: tuple[int | None, ...] | None

    def fits(self, array: np.ndarray) -> bool:
        """Returns whether it takes an array."""
        if self.shape is not None and (
            array.ndim != len(self.shape)
            or any(n not in (None, m) for n, m in zip(self.shape, array.shape))
        ):
            return False

        # Lists of different lengths stay lists in an array of objects.
        return self.dtype != object or list not in map(type, array.ravel())


@dataclasses.dataclass(frozen=True)
class Request:
    """A parsed request.

    Attributes:
        signature: the signature to call.
        arrays: name -> array [b, ...] of each input.
        form: "instances" or "inputs".
        size: b.
        queries: whose rows these are, or none.
    """

    signature: str
    arrays: dict[str, np.ndarray]
    form: str
    size: int
    queries: list[ranking.Query]


def parse(body: bytes, signatures: dict[str, dict[str, Spec]]) -> Request:
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
    queries: list[ranking.Query] = []
    if forms == ["instances"]:
        if not isinstance(columns, list):
            kind = type(columns).__name__
            raise UserError(f"instances is a {kind}", expected="a list")
        if any(ranking.is_query(row, specs) for row in columns):
            with json_files.reported(expected=ranking.EXPECTED):
                queries = msgspec.convert(columns, list[ranking.Query])
            columns = [x for q in queries for x in ranking.rows_of(q, specs)]
        rows = [_named(row, specs) for row in columns]
        columns = {key: [row[key] for row in rows] for key in specs}
    columns = _named(columns, specs)

    arrays = {k: _array(columns[k], spec, k) for k, spec in specs.items()}
    sizes = {len(x) for x in arrays.values() if x.ndim}
    if len(sizes) != 1 or 0 in sizes:
        raise UserError(
            f"{' and '.join(map(str, sorted(sizes)))} examples",
            expected="at least one, and the same number in each input",
        )
    return Request(name, arrays, forms[0], sizes.pop(), queries)


def _named(value, specs: dict) -> dict:
    """Adds the name of the only input to a value without it."""
    is_dict = isinstance(value, dict) and value.keys() != _BYTES
    if len(specs) == 1 and not is_dict:
        return dict.fromkeys(specs, value)
    if not is_dict or value.keys() != specs.keys():
        names = ", ".join(value) if is_dict else value
        raise UserError(f"inputs {names!r:.60}", expected=", ".join(specs))
    return value


def _array(value, spec: Spec, name: str) -> np.ndarray:
    try:
        array = np.array(_decoded(value, spec.dtype.kind), spec.dtype)
        if spec.fits(array):
            return array
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass  # another type, or lists of different lengths

    kind = "string" if spec.dtype == object else spec.dtype.name
    expected = f"{kind} of shape {spec.shape}"
    raise UserError(f"{name} is {value!r:.60}", expected=expected)


def _decoded(value, kind: str):
    if isinstance(value, list):
        return [_decoded(x, kind) for x in value]
    if isinstance(value, dict) and value.keys() == _BYTES:
        value = base64.b64decode(value["b64"], validate=True)
    elif isinstance(value, str):
        value = value.encode()

    # NumPy would take true for 1, and read numbers in strings.
    types = _TYPES.get(kind, (int, float))
    if not isinstance(value, types) or isinstance(value, bool) != (kind == "b"):
        raise ValueError
    return value


def metadata_of(inputs: dict, outputs: dict) -> dict:
    """Describes a signature, as a proto in JSON.

    Args:
        inputs, outputs: name -> the value for one example, [1, ...].
    """

    def described(values):
        arrays = {name: np.asarray(value) for name, value in values.items()}
        return {
            name: {
                "name": name,
                "dtype": "DT_FLOAT" if x.dtype.kind == "f" else "DT_STRING",
                "tensor_shape": {
                    "dim": [{"size": str(n)} for n in (-1, *x.shape[1:])]
                },
            }
            for name, x in arrays.items()
        }

    return {
        "inputs": described(inputs),
        "outputs": described(outputs),
        "method_name": "tensorflow/serving/predict",
    }


def to_json(outputs: dict[str, np.ndarray], request: Request) -> str:
    """Formats the answer to a request.

    Args:
        outputs: name -> array [b, ...].
        request: the request.

    Raises:
        UserError: the model cannot order texts.
        ValueError: a number is not finite.
    """
    if request.queries:
        rows = (dict(zip(outputs, row)) for row in zip(*outputs.values()))
        answers, inputs = map(asking.to_values, rows), request.arrays
        ranked = [ranking.order(q, inputs, answers) for q in request.queries]
        return json.dumps({_ANSWERS[request.form]: ranked}, allow_nan=False)

    values = {k: v.tolist() for k, v in _trimmed(outputs).items()}
    if "label_names" in values and outputs["label"].ndim == 2:
        # Of several labels, without the padding.
        values["label"] = [[x for x in row if x] for row in values["label"]]

    # The name of the only output is omitted.
    answer = values
    if len(values) == 1:
        (answer,) = values.values()
    elif request.form == "instances":
        rows = zip(*values.values(), strict=True)
        answer = [dict(zip(values, row)) for row in rows]
    body = {_ANSWERS[request.form]: answer}
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
