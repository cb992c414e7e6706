"""Settings as frozen dataclasses, and the command-line flags made from them.

    @dataclasses.dataclass(frozen=True)
    class Settings:
        training: Training = group(Training, eval_steps={"default": 1000})
        doc_stride: int = flag(128, "Tokens between two windows.", at_least=1)

    settings = parse(sys.argv, Settings, __doc__)

The name, type, default, help and range of a flag are defined in its field
only. Fields of a nested dataclass are flags of the same command line. `--help`
sorts them by topic: that of the field, else `topic` of its dataclass.
"""

import dataclasses
import os
import re
import textwrap
import types
import typing
from collections.abc import Iterator
from typing import Any

from absl import flags as absl_flags

from bert.common.errors import UserError

_FLAG, _GROUP = "flag", "group"  # keys of a field's metadata
DATA, MODEL, TRAINING, OUTPUT = "Data", "Model", "Training", "Output"
RARE, TPU = "Rare", "TPU and clusters"
REQUIRED = "Required"
_SHORT = (REQUIRED, DATA, MODEL, TRAINING, OUTPUT, RARE)  # without --helpfull
HELP = {"-h": _SHORT, "-help": _SHORT, "--help": _SHORT}
HELP |= dict.fromkeys(("-helpfull", "--helpfull"), (*_SHORT, TPU))
GIVEN = "given"  # field of a settings class that receives the names given

_DEFINE = {
    bool: absl_flags.DEFINE_bool,
    int: absl_flags.DEFINE_integer,
    float: absl_flags.DEFINE_float,
    str: absl_flags.DEFINE_string,
    tuple: absl_flags.DEFINE_list,
}


@dataclasses.dataclass(frozen=True)
class Flag:
    """The definition of a flag by a field.

    Attributes:
        name: name, without dashes.
        kind: bool, int, float, str or tuple.
        default: value if the flag is not given.
        help: one sentence.
        at_least, at_most: bounds of a number, or None.
        choices: allowed values of a string, or ().
        required: whether the flag must be given.
        resume: whether a resumed run needs the same value to take the same
            steps.
        path: whether the value is a path or several; `~` is expanded.
        per_worker: whether workers may have other values.
        positional: whether the argument that is not a flag is its value.
        topic: of the flag in `--help`.
        where: names of the nested fields that lead to the flag.
    """

    name: str | None = None
    kind: type = str
    default: Any = None
    help: str = ""
    at_least: float | None = None
    at_most: float | None = None
    choices: tuple[str, ...] = ()
    required: bool = False
    resume: bool = False
    path: bool = False
    per_worker: bool = False
    positional: bool = False
    topic: str = ""
    where: tuple[str, ...] = ()


def flag(default: Any, help: str, **options: Any) -> Any:
    """Declares a field that is a flag.

    Args:
        default: value if the flag is not given.
        help: one sentence.
        **options: other attributes of `Flag`; `name` is that of the field
            unless given, `kind` and `where` follow from the field.

    Returns:
        a dataclass field.
    """
    declared = Flag(default=default, help=help, **options)
    return dataclasses.field(default=default, metadata={_FLAG: declared})


def group(settings_class: type, **changes: dict[str, Any]) -> Any:
    """Declares a field of nested settings.

    Args:
        settings_class: a dataclass of flags.
        **changes: name of a flag -> arguments of `flag` in this group, such
            as `{"default": 1000}` or `{"required": False}`.

    Returns:
        a dataclass field.
    """
    defaults = {
        name: change["default"]
        for name, change in changes.items()
        if "default" in change
    }
    return dataclasses.field(
        default_factory=lambda: replace(settings_class(), **defaults),
        metadata={_GROUP: changes},
    )


def flags_of(settings_class: type) -> Iterator[Flag]:
    """Yields the flags of a settings class, nested ones included."""
    hints = typing.get_type_hints(settings_class)
    for field in dataclasses.fields(settings_class):
        if _GROUP in field.metadata:
            changes = field.metadata[_GROUP]
            for inner in flags_of(hints[field.name]):
                change = changes.get(inner.name, {})
                where = (field.name, *inner.where)
                yield dataclasses.replace(inner, where=where, **change)
        elif _FLAG in field.metadata:
            declared = field.metadata[_FLAG]
            yield dataclasses.replace(
                declared,
                name=declared.name or field.name,
                topic=declared.topic or getattr(settings_class, "topic", DATA),
                kind=_kind(hints[field.name]),
                where=(field.name,),
            )


def parse(argv: list[str], settings_class: type, usage: str) -> Any:
    """Parses a command line.

    Args:
        argv: the command line, program name first.
        settings_class: a dataclass of flags; its field `given`, if it has
            one, receives the names of the flags on the command line.
        usage: the script's docstring, which `--help` prints.

    Returns:
        an instance of `settings_class`.

    Raises:
        UserError: an unknown flag, a bad value, a missing flag, or an
            argument that is not a flag.
        SystemExit: after `--help` or `--helpfull`.
    """
    values = absl_flags.FlagValues()
    declared = list(flags_of(settings_class))
    for one in declared:
        _define(one, values)
    for word in argv[1:]:
        if word in HELP:
            print(f"{usage}{describe(declared, HELP[word])}", end="")
            raise SystemExit(0)
    positional = [one.name for one in declared if one.positional]
    values.set_gnu_getopt(bool(positional))  # flags may follow arguments
    try:
        rest = values(argv)
        if positional and rest[1:]:
            values[positional[0]].parse(rest.pop(1))
    except absl_flags.Error as error:
        unknown = getattr(error, "flagname", " ")
        near = [f"--{x.name}" for x in declared if unknown in x.name][:3]
        if "Did you mean" in str(error) or not near:
            raise UserError(str(error), fix="see --help") from None
        fix = f"did you mean {' or '.join(near)}?"
        raise UserError(str(error), fix=fix) from None
    if len(rest) > 1:
        raise UserError(
            f"unexpected argument {rest[1]!r}",
            fix="write --flag=value; quote values with spaces",
        )
    missing = [
        f"--{one.name}"
        for one in declared
        if one.required and values[one.name].value is None
    ]
    if missing:
        raise UserError(f"missing {', '.join(missing)}", fix="see --help")
    settings = settings_class()
    given = frozenset(one.name for one in declared if values[one.name].present)
    if hasattr(settings, GIVEN):
        settings = dataclasses.replace(settings, given=given)
    read = {one.name: _value(one, values[one.name].value) for one in declared}
    return replace(settings, **read)


def describe(declared: list[Flag], topics: tuple[str, ...]) -> str:
    """Describes flags for `--help`, by topic.

    Args:
        declared: the flags.
        topics: the topics to show.
    """
    lines, shown = [], 0
    for topic in topics:
        some = [
            one
            for one in declared
            if topic == (REQUIRED if one.required else one.topic)
        ]
        lines += ["", f"{topic}:"] * bool(some)
        for one in some:
            name = f"[no]{one.name}" if one.kind is bool else one.name
            lines += textwrap.wrap(
                f"--{name}: {one.help}{_choices_and_default(one)}",
                width=80,
                initial_indent="  ",
                subsequent_indent="      ",
                break_on_hyphens=False,
            )
        shown += len(some)
    if shown < len(declared):
        lines += ["", f"--helpfull shows {len(declared) - shown} more flags."]
    return "\n".join([*lines, ""])


def replace(settings: Any, **changes: Any) -> Any:
    """Returns settings with other values.

    Args:
        settings: an instance of a dataclass of flags.
        **changes: name of a flag, nested or not -> new value.

    Returns:
        an instance of the same class.
    """
    where = {one.name: one.where for one in flags_of(type(settings))}
    unknown = set(changes) - set(where)
    assert not unknown, f"no flags of {type(settings).__name__}: {unknown}"
    for name, value in changes.items():
        settings = _with(settings, where[name], value)
    return settings


def _with(settings: Any, where: tuple[str, ...], value: Any) -> Any:
    """Returns settings with another value of a nested field."""
    first, *inner = where
    if inner:
        value = _with(getattr(settings, first), inner, value)
    return dataclasses.replace(settings, **{first: value})


def as_dict(settings: Any, mark: str | None = None) -> dict[str, Any]:
    """Returns the values of flags by name.

    Args:
        settings: an instance of a dataclass of flags.
        mark: "resume", "path" or "per_worker": only flags with this mark;
            None: all flags.
    """
    return {
        one.name: value_of(settings, one)
        for one in flags_of(type(settings))
        if mark is None or getattr(one, mark)
    }


def value_of(settings: Any, one: Flag) -> Any:
    """Returns the value of a flag in settings."""
    for name in one.where:
        settings = getattr(settings, name)
    return settings


def _kind(hint: Any) -> type:
    """Returns the type of a flag: `float` for `float | None`, or `tuple`."""
    if isinstance(hint, types.UnionType):
        (hint,) = set(typing.get_args(hint)) - {type(None)}
    kind = typing.get_origin(hint) or hint
    assert kind in _DEFINE, hint
    return kind


def _define(one: Flag, values: absl_flags.FlagValues) -> None:
    """Defines the absl flag of a field."""
    default = one.default
    named = {
        "name": one.name,
        "default": list(default) if isinstance(default, tuple) else default,
        "help": one.help,
        "flag_values": values,
    }
    if one.choices:
        absl_flags.DEFINE_enum(enum_values=one.choices, **named)
    else:
        _DEFINE[one.kind](**named)


def _choices_and_default(one: Flag) -> str:
    """The end of a flag's description."""
    parts = [", ".join(one.choices)] if one.choices else []
    default = one.default
    if isinstance(default, tuple):
        default = ",".join(default)
    if default not in (None, ""):
        shown = str(default).lower() if one.kind is bool else default
        parts.append(f"default: {shown}")
    return f" ({'; '.join(parts)})" if parts else ""


def _value(one: Flag, value: Any) -> Any:
    """Converts and checks the value of an absl flag."""
    low, high = one.at_least, one.at_most
    if low is not None and value is not None and not value >= low:
        raise UserError(f"--{one.name}={value}", expected=f"at least {low}")
    if high is not None and value is not None and not value <= high:
        raise UserError(f"--{one.name}={value}", expected=f"at most {high}")
    if one.path and value:
        return _expand(value)
    return tuple(value) if isinstance(value, list) else value


def _expand(paths: str) -> str:
    """Expands `~` and `~user` in paths, also in a list or after `name=`."""
    return re.sub(
        r"(?<![^,=])~[^/,]*", lambda home: os.path.expanduser(home[0]), paths
    )
