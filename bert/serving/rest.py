"""Bodies of TF Serving's REST API: JSON <-> examples and predictions.

    {"instances": [{"text": "a"}, {"text": "b"}]}        rows
    {"instances": ["a", "b"]}                            rows of the only input
    {"inputs": {"text": ["a", "b"]}}                     columns
    {"instances": [{"text": "a", "texts": ["b", "c"]}]}  query, see `ranking`

Strings may also be base64: {"b64": "..."}. "signature_name" is optional.
"""

import base64
import json
from typing import NamedTuple

import msgspec

from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.inference import example_parsing
from bert.inference.predictor import Predictor, json_values

DEFAULT = "serving_default"
_OUTPUTS = {"instances": "predictions", "inputs": "outputs"}  # form -> key
_BYTES = {"b64"}


class Request(NamedTuple):
    """A parsed request.

    Attributes:
        examples: list of dict. Examples for a `Predictor`.
        form: str. "instances" or "inputs".
    """

    examples: list[dict]
    form: str


def parse(body: bytes, predictor: Predictor) -> Request:
    """Parses the body of a request.

    Args:
        body: bytes. JSON.
        predictor: Predictor. The model.

    Raises:
        UserError: The body is not a valid request for this model.
    """
    try:
        return _parse(body, predictor)
    except RecursionError:
        raise UserError("JSON is nested too deep") from None


def _parse(body: bytes, predictor: Predictor) -> Request:
    with json_files.reported():
        values = json_files.decode(body)
    forms = [x for x in _OUTPUTS if isinstance(values, dict) and x in values]
    if len(forms) != 1:
        expected = 'an object with "instances" or "inputs"'
        raise UserError("not a request", expected=expected)

    name, known = values.get("signature_name"), predictor.task.signatures
    name = known[0] if name in ("", None) else name  # as in TF Serving
    if name not in known:
        raise UserError(
            f"signature_name {name!r:.60}",
            expected=f"one of {', '.join(known)}",
        )

    (form,) = forms
    rows = values[form]
    if form == "inputs":
        rows = _rows(rows, predictor)
    with json_files.reported(form, "a list of objects or strings"):
        rows = msgspec.convert(rows, list[dict | str])
    if not rows:
        raise UserError("0 examples", expected="at least one")

    named = (_named(x, predictor) for x in rows)
    examples = [example_parsing.parse(predictor.task, x) for x in named]
    return Request([predictor.signed(x, name) for x in examples], form)


def _rows(columns, predictor: Predictor) -> list:
    """Converts columns to rows."""
    columns = _named(columns, predictor)
    lists = [x if isinstance(x, list) else [x] for x in columns.values()]
    sizes = {len(x) for x in lists}
    if len(sizes) > 1:
        raise UserError(
            f"{' and '.join(map(str, sorted(sizes)))} examples",
            expected="the same number in each input",
        )
    return [dict(zip(columns, row)) for row in zip(*lists)]


def _named(value, predictor: Predictor) -> dict:
    """Adds the name of the only input to a value without a name."""
    names = predictor.task.inputs
    is_dict = isinstance(value, dict) and value.keys() != _BYTES
    if not is_dict and len(names) == 1:
        value = {names[0]: value}
    elif not is_dict:
        raise UserError(f"inputs {value!r:.60}", expected=", ".join(names))
    return {key: _decoded(x) for key, x in value.items()}


def _decoded(value):
    """Decodes {"b64": "..."}, also in lists."""
    if isinstance(value, list):
        return [_decoded(x) for x in value]
    if isinstance(value, dict) and value.keys() == _BYTES:
        try:
            raw = base64.b64decode(value["b64"], validate=True)
        except (TypeError, ValueError):
            raise UserError(
                f"b64 is {value['b64']!r:.60}", expected="base64"
            ) from None
        return raw.decode(errors="replace")
    return value


def to_json(predictions: list[dict], form: str) -> str:
    """Formats the predictions of a request.

    Args:
        predictions: list of dict. JSON values of each example, not empty.
        form: str. Form of the request, "instances" or "inputs".

    Raises:
        ValueError: A number is not finite.
    """
    values = json_values(predictions)
    if form == "inputs":  # by column
        values = {key: [row[key] for row in values] for key in values[0]}
    return json.dumps({_OUTPUTS[form]: values}, allow_nan=False)


def metadata_of(predictor: Predictor) -> dict:
    """Describes the inputs and outputs of a model, as a proto in JSON.

    Args:
        predictor: Predictor. The model.
    """
    inputs: dict = dict.fromkeys(predictor.task.inputs, "a")
    if example_parsing.has_choices(predictor.task):
        inputs[predictor.task.inputs[-1]] = ["a", "b"]
    (outputs,) = predictor([inputs])

    def described(values):
        return {
            name: {
                "name": name,
                "dtype": _dtype(x),
                "tensor_shape": {"dim": [{"size": "-1"}]},
            }
            for name, x in values.items()
        }

    return {
        "inputs": described(inputs),
        "outputs": described(outputs),
        "method_name": "tensorflow/serving/predict",
    }


def _dtype(value) -> str:
    """Returns the dtype of a JSON value, or of the first value in it."""
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        return _dtype(value[0] if value else "")
    kinds = {float: "DT_FLOAT", int: "DT_INT64"}
    return kinds.get(type(value), "DT_STRING")
