"""Settings as frozen dataclasses, whose fields are command-line flags.

    @dataclasses.dataclass(frozen=True)
    class Settings(Training):
        RULES = [at_most("doc_stride", lambda s: s.max_seq_length, "a text")]

        eval_steps: int = changed(Training, "eval_steps", default=1000)
        doc_stride: int = flag(128, "Tokens between two windows.", at_least=1)

    settings = command_line.parse(sys.argv, Settings, __doc__)

The name, type, default, help and range of a flag are defined in its field
only. Inherited fields are flags of the same command line. `--help` groups flags
by the topic of the field, or by the `topic` of the class that declares it.
"""

import dataclasses
import inspect
import math
import numbers
import re
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from bert.common.errors import UserError
from bert.common.rules import Rule

_FLAG = "flag"  # key of a field's metadata
_KINDS = (bool, int, float, str, tuple)
DATA, MODEL, TRAINING, OUTPUT = "Data", "Model", "Training", "Output"
RARE, TPU = "Rare", "TPU and clusters"
REQUIRED = "Required"
RENAMED = {  # former name -> name
    "best_metric": "metric_for_best_model",
    "eval_share": "eval_fraction",
    "mix_layers": "layer_pooling",
    "plan": "dry_run",
    "reference": "tfidf_baseline",
    "train_for": "max_time",
    "window_stride": "doc_stride",
}


@dataclasses.dataclass(frozen=True)
class Flag:
    """Definition of a flag, stored in its dataclass field.

    Attributes:
        name: str. Name of the field, without dashes.
        kind: type. bool, int, float, str or tuple.
        default: Value if the flag is not given.
        help: str. One sentence.
        at_least, at_most: float or None. Bounds of a number. A float is also
            finite.
        choices: tuple of str. Allowed values of a string; () allows any.
        parse: callable or None. Checks a value and raises a UserError if it
            is invalid. The value of the flag stays as it was given, as runs
            record it.
        required: bool. Whether the flag must be given. Its field's type is
            then without None, although the default is None.
        resume: bool. Whether a resumed run needs the same value to repeat the
            same steps.
        recorded: bool. Whether predictions depend on the value, so that later
            commands use the value of the training unless it is given.
        path: bool. Whether the value is a path or a list of paths, in which
            `~` is expanded. It is not empty.
        per_worker: bool. Whether the value may differ between workers.
        several: bool. Whether a number may be a comma-separated list.
        is_time: bool. Whether a number is in seconds unless it has a unit.
        topic: str. Topic of the flag in `--help`.
    """

    name: str = ""
    kind: type = str
    default: Any = None
    help: str = ""
    at_least: float | None = None
    at_most: float | None = None
    choices: tuple[str, ...] = ()
    parse: Callable[[str], Any] | None = None
    required: bool = False
    resume: bool = False
    recorded: bool = False
    path: bool = False
    per_worker: bool = False
    several: bool = False
    is_time: bool = False
    topic: str = ""


@dataclasses.dataclass(frozen=True)
class BaseSettings:
    """Base class of settings with rules.

    Attributes:
        given: frozenset of str. Names of the flags on the command line.
        grid: tuple. (name, values) of each flag with several values; the flag
            itself has the first value.
    """

    RULES: ClassVar[list[Rule]] = []
    topic: ClassVar[str] = DATA

    given: frozenset[str] = dataclasses.field(default=frozenset(), kw_only=True)
    grid: tuple[tuple[str, tuple], ...] = dataclasses.field(
        default=(), kw_only=True
    )


def flag(default: Any, help: str, **options: Any) -> Any:
    """Declares a dataclass field that is a flag.

    Args:
        default: Value if the flag is not given.
        help: str. One sentence.
        **options: Other attributes of `Flag`. `name` and `kind` are derived
            from the field.

    Returns:
        A dataclass field.
    """
    declared = Flag(default=default, help=help, **options)
    return dataclasses.field(default=default, metadata={_FLAG: declared})


def changed(settings_class: type, name: str, **changes: Any) -> Any:
    """Declares an inherited flag again, with other attributes.

    Args:
        settings_class: type. Class that has the flag.
        name: str. Name of the flag.
        **changes: Attributes of `Flag` to change.

    Returns:
        A dataclass field.
    """
    (inherited,) = (x for x in flags_of(settings_class) if x.name == name)
    return flag(**{**vars(inherited), **changes})


def flags_of(settings_class: type) -> Iterator[Flag]:
    """Yields the flags of a settings class, its own before inherited ones."""
    hints = typing.get_type_hints(settings_class)
    fields = {field.name: field for field in dataclasses.fields(settings_class)}
    for base in settings_class.__mro__:
        topic = vars(base).get("topic", DATA)
        for name in inspect.get_annotations(base):
            field = fields.pop(name, None)
            if field and _FLAG in field.metadata:
                declared = field.metadata[_FLAG]
                yield dataclasses.replace(
                    declared,
                    name=name,
                    topic=declared.topic or topic,
                    kind=_kind(hints[name]),
                )


def check_value(one: Flag, value: Any, shown: str = "") -> None:
    """Checks the range of a number, or a string with the flag's `parse`.

    Args:
        one: Flag. The flag.
        value: Its value, with the type of the flag; None is valid.
        shown: str. Name in the message. Default: "", the name of the flag.

    Raises:
        UserError: The value is out of range or invalid.
    """
    low, high = one.at_least, one.at_most
    found = f"{shown or f'--{one.name}'}={value}"
    if value is None:
        return
    if one.kind is float and not math.isfinite(value):
        raise UserError(found, expected="a finite number")
    if low is not None and value < low:
        raise UserError(found, expected=f"at least {low}")
    if high is not None and value > high:
        raise UserError(found, expected=f"at most {high}")
    if one.parse:
        one.parse(value)


def check_argument(
    settings_class: type, name: str, value: Any, shown: str = ""
) -> None:
    """Checks a number that is an argument of a function, as a flag.

    Args:
        settings_class: type. Class that has the flag.
        name: str. Name of the flag.
        value: The argument; None is valid.
        shown: str. Name of the argument. Default: "", the name of the flag.

    Raises:
        UserError: The value is not a number, or out of the range of the flag.
    """
    (one,) = (x for x in flags_of(settings_class) if x.name == name)
    kinds = {int: numbers.Integral, float: numbers.Real}
    is_number = isinstance(value, kinds[one.kind])
    if value is not None and (not is_number or isinstance(value, bool)):
        raise UserError(
            f"{shown or name}={value!r:.60}",
            expected="an integer" if one.kind is int else "a number",
        )
    check_value(one, value, shown or name)


def as_dict(
    settings: BaseSettings, mark: str | None = None, of: type | None = None
) -> dict[str, Any]:
    """Returns the values of flags by name.

    Args:
        settings: An instance of a dataclass of flags.
        mark: str or None. "resume", "path" or "per_worker" selects the flags
            with this attribute. None selects all flags.
        of: type or None. Base class whose flags are selected. Default: all
            flags.
    """
    return {
        one.name: getattr(settings, one.name)
        for one in flags_of(of or type(settings))
        if mark is None or getattr(one, mark)
    }


def from_json(values: dict[str, Any]) -> dict[str, Any]:
    """Returns the values of flags that were written as JSON.

    Args:
        values: dict. Name of a flag, or a former name -> JSON value.
    """
    return {
        RENAMED.get(name, name): tuple(x) if isinstance(x, list) else x
        for name, x in values.items()
    }


def read_time(text: str) -> float | None:
    """Converts a time such as 90m to seconds.

    Args:
        text: str. Number with the unit s, m or h.

    Returns:
        float or None. None if the text is not a time.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])", text)
    if match is None:
        return None
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]


def _kind(hint: Any) -> type:
    """Returns the type of a flag: `float` for `float | None`, or `tuple`."""
    if isinstance(hint, types.UnionType):
        (hint,) = set(typing.get_args(hint)) - {type(None)}
    kind = typing.get_origin(hint) or hint
    assert kind in _KINDS, hint
    return kind
