"""Answers of an exported SavedModel to texts.

load -> ServedModel -> answer
"""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Mapping

import numpy as np

from bert.common import storage, tensorflow_log
from bert.common.errors import UserError
from bert.common.flags import RARE, flag
from bert.common.progress import say
from bert.data import tables
from bert.serving import known_exports

_RECORDS = "examples"  # an input of serialized records, not of text
_ORDER = ("text", "text_b", "question", "context")  # of the fields in a line

# Outputs that are lists padded with "": name -> {output: key of an element}.
LISTS = {
    "words": {
        "words": "word",
        "labels": "label",
        "word_starts": "start",
        "word_ends": "end",
        "probabilities": "probability",
    },
    "entities": {
        "entities": "entity",
        "types": "type",
        "starts": "start",
        "ends": "end",
        "scores": "score",
    },
}


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of predict.py."""

    model: str | None = flag(
        None, "Folder of the SavedModel.", required=True, path=True
    )
    trust_model: bool = flag(
        False,
        "Load a model that you did not export yourself: loading a SavedModel "
        "runs it as a program.",
    )
    input_file: str | None = flag(
        None,
        "One text per line, JSON lines (.jsonl) or a table (.csv, .tsv, "
        ".parquet). Default: standard input.",
        path=True,
    )
    text_column: str | None = flag(
        None,
        "Table: column of the text, by name or number from 0; default: named "
        "like the input of the model.",
    )
    text_b_column: str | None = flag(None, "Table: column of the second text.")
    id_column: str | None = flag(
        None, "Table: column of the ids in the answers."
    )
    delimiter: str | None = flag(
        None,
        "Table: delimiter of fields; default: .csv a comma, else tabs.",
        topic=RARE,
    )
    signature: str = flag(
        "serving_default", "Signature to call; all its inputs must be text."
    )
    inputs: tuple[str, ...] | None = flag(
        None, "Names of the inputs, in the order of the fields of a line."
    )
    json: bool = flag(
        False, 'Read lines of JSON objects, such as {"text": "..."}.'
    )
    batch_size: int = flag(
        32, "Maximum number of lines of a batch.", at_least=1
    )
    strict: bool = flag(
        False, "Exit with code 2 at the first line that cannot be answered."
    )

    @property
    def reads_table(self) -> bool:
        """Whether the input has columns; one of JSON lines may have them."""
        names = self.text_column, self.text_b_column, self.id_column
        return names != (None, None, None) or tables.is_table(
            self.input_file or ""
        )

    def check(self) -> None:
        """Checks the folder of the model, and the input file.

        Raises:
            UserError: if it contains no SavedModel, or one of unknown source;
                or there is no such file.
        """
        if not storage.is_file(os.path.join(self.model, "saved_model.pb")):
            raise UserError(
                "no saved_model.pb",
                path=self.model,
                expected="a folder that was written by --export_dir"
                if storage.is_folder(self.model)
                else "an existing folder",
            )
        if not self.trust_model and not known_exports.is_known(self.model):
            raise UserError(
                "not among the exports of this user",
                path=self.model,
                fix="loading a SavedModel runs it as a program: if you trust "
                "its source, pass --trust_model",
            )
        if self.reads_table and not self.input_file:
            raise UserError(
                "columns of standard input", fix="pass --input_file"
            )
        if self.input_file and not storage.is_file(
            storage.regular(self.input_file)
        ):
            is_folder = storage.is_folder(self.input_file)
            raise UserError(
                "is a folder" if is_folder else "no such file",
                path=self.input_file,
                fix="check --input_file",
            )


@dataclasses.dataclass(frozen=True)
class ServedModel:
    """A loaded signature.

    Attributes:
        call: name -> string [B] or [B, C] to name -> array [B, ...].
        inputs: names of the inputs, in the order of the fields of a line.
        has_choices: whether the last input is [B, C]; it takes all remaining
            fields of a line, padded with "".
        count_tokens: inputs as of `call` -> the model's maximum number of
            tokens, and that of each text, int32 [B]; None if unknown.
    """

    call: Callable[[dict], dict]
    inputs: list[str]
    has_choices: bool = False
    count_tokens: Callable[[dict], tuple[int, np.ndarray]] | None = None


def load(settings: Settings) -> ServedModel:
    """Loads the model.

    Args:
        settings: checked, so that the model is trusted.

    Raises:
        UserError: if it is damaged, or has no such signature.
    """
    import tensorflow as tf

    from bert.modeling import hub
    from bert.serving import lite

    say(f"loading {settings.model} ...")
    loaded = hub.load(settings.model, trust_model=True)
    texts = {}
    signatures = getattr(loaded, "signatures", None)
    # An object of the model may have this name.
    if not isinstance(signatures, Mapping):
        signatures = {}
    for name, function in signatures.items():
        specs = function.structured_input_signature[1]
        ranks = {name: spec.shape.rank for name, spec in specs.items()}
        lists = sum(rank == 2 for rank in ranks.values())
        if (
            lists <= 1
            and _RECORDS not in specs
            and all(
                spec.dtype == tf.string and spec.shape.rank in (1, 2)
                for spec in specs.values()
            )
        ):
            order = sorted(specs, key=lambda x: (ranks[x], _order_of(x), x))
            texts[name] = (function, order, bool(lists))
    if settings.signature not in texts:
        raise UserError(
            f"no signature {settings.signature!r} with text inputs",
            path=settings.model,
            expected=f"one of {', '.join(texts) or 'none'}",
        )
    function, names, has_choices = texts[settings.signature]
    if settings.signature == lite.DEFAULT:
        function = lite.serving_default(settings.model, loaded)
    inputs = list(settings.inputs or names)
    if sorted(inputs) != sorted(names) or (
        has_choices and inputs[-1] != names[-1]
    ):
        raise UserError(
            f"--inputs={','.join(inputs)}",
            path=settings.model,
            expected=", ".join(names),
        )

    first = iter([tensorflow_log.held_back()])  # when the graph is optimized

    def call(strings):
        quietly = next(first, contextlib.nullcontext())
        texts = {name: tf.constant(x, tf.string) for name, x in strings.items()}
        try:
            with quietly:
                outputs = function(**texts)
        except tf.errors.OpError as error:
            raise UserError(
                f"cannot be run: {error.message}", path=settings.model
            ) from None
        return {
            name: _rows(name, value.numpy(), len(strings[names[0]]), settings)
            for name, value in outputs.items()
        }

    return ServedModel(call, inputs, has_choices, _counter(loaded, inputs))


def _counter(loaded, inputs: list[str]) -> Callable | None:
    """Finds the function of our exports that counts tokens."""
    import tensorflow as tf

    function = getattr(loaded, "count_tokens", None)
    specs = getattr(function, "structured_input_signature", ((), {}))[1]
    if sorted(specs) != sorted(inputs):
        return None

    def count(strings):
        found = function(**{k: tf.constant(x) for k, x in strings.items()})
        return int(found["max_seq_length"]), found["tokens"].numpy()

    return count


def _rows(name: str, value, count: int, settings: Settings):
    """Checks that an output has a row for each line."""
    if value.ndim == 0 or len(value) != count:
        raise UserError(
            f"the output {name!r} has the shape {list(value.shape)}",
            path=settings.model,
            expected=f"{count} rows, one for each line",
        )
    return value


def _order_of(name: str) -> int:
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


def answer(
    model: ServedModel, examples: list[list], batch_size: int
) -> list[dict]:
    """Answers examples, in batches of similar lengths.

    Args:
        model: the model to call.
        examples: fields of each line, from `answer_lines.fields_of`.
        batch_size: maximum number of examples of a batch.

    Returns:
        the answer to each example, in order.
    """
    order = sorted(range(len(examples)), key=lambda i: len(str(examples[i])))
    answers: list = [None] * len(examples)
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        outputs = model.call(columns_of(model, [examples[i] for i in chosen]))
        for position, index in enumerate(chosen):
            found = {name: value[position] for name, value in outputs.items()}
            if model.has_choices:  # drop the padding
                count = len(examples[index][-1])
                found = {
                    k: v[:count] if v.ndim else v for k, v in found.items()
                }
            answers[index] = to_values(found)
    return answers


def columns_of(model: ServedModel, examples: list[list]) -> dict[str, list]:
    """The inputs of a model, by name; choices are padded with ""."""
    columns = list(zip(*examples, strict=True))
    if model.has_choices:
        count = max(map(len, columns[-1]))
        columns[-1] = [x + [""] * (count - len(x)) for x in columns[-1]]
    return dict(zip(model.inputs, columns, strict=True))


def to_values(outputs: dict) -> dict:
    """Converts outputs of an example to JSON values, grouped by element."""
    values = {}
    for name in sorted(outputs):
        value = outputs[name]
        values[name] = value.tolist() if hasattr(value, "tolist") else value
    values = {name: _decoded(value) for name, value in values.items()}
    try:
        return _grouped(values)
    except TypeError:  # outputs of these names with other shapes
        return values


def _grouped(values: dict) -> dict:
    values = dict(values)
    names = values.get("label_names")
    if isinstance(names, list) and "probabilities" in values:
        pairs = zip(values.pop("label_names"), values["probabilities"])
        values["probabilities"] = dict(pairs)
        if isinstance(values.get("label"), list):  # of several labels, padded
            values["label"] = [x for x in values["label"] if x]
    for name, parts in LISTS.items():
        if parts.keys() <= values.keys():
            entries = zip(*[values.pop(part) for part in parts])
            values[name] = [
                dict(zip(parts.values(), entry))
                for entry in entries
                if entry[0]
            ]
    return values


def _decoded(value):
    if isinstance(value, list):
        return [_decoded(x) for x in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return round(value, 6) if isinstance(value, float) else value
