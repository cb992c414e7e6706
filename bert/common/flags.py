"""Settings as frozen dataclasses, and the command-line flags made from them.

    @dataclasses.dataclass(frozen=True)
    class Settings:
        training: Training = group(Training, eval_steps={"default": 1000})
        doc_stride: int = flag(128, "Tokens between two windows.", at_least=1)

        def mistakes(self) -> Iterator[UserError]:
            if self.doc_stride > self.training.max_seq_length:
                yield UserError(f"--doc_stride={self.doc_stride}", ...)

    settings = parse(sys.argv, Settings, __doc__)

The name, type, default, help and range of a flag are defined in its field
only. Fields of a nested dataclass are flags of the same command line. `parse`
reports all mistakes of a command line at once. `mistakes` yields an error for
flags that contradict each other. `--help` groups flags by the topic of the
field, or by `topic` of its dataclass.
"""

import dataclasses
import functools
import os
import re
import textwrap
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from absl import flags as absl_flags

from bert.common.errors import UserError, raised_by

_FLAG, _GROUP = "flag", "group"  # keys of a field's metadata
DATA, MODEL, TRAINING, OUTPUT = "Data", "Model", "Training", "Output"
RARE, TPU = "Rare", "TPU and clusters"
REQUIRED = "Required"
_SHORT = (REQUIRED, DATA, MODEL, TRAINING, OUTPUT, RARE)  # without --helpfull
HELP: dict[str, tuple[str, ...]]
HELP = {"-h": _SHORT, "-help": _SHORT, "--help": _SHORT}
HELP |= dict.fromkeys(("-helpfull", "--helpfull"), (*_SHORT, TPU))

_DEFINE: dict[type, Callable] = {
    bool: absl_flags.DEFINE_bool,
    int: absl_flags.DEFINE_integer,
    float: absl_flags.DEFINE_float,
    str: absl_flags.DEFINE_string,
    tuple: absl_flags.DEFINE_list,
}


_NUMBERS: dict[type, Callable] = {
    int: absl_flags.IntegerParser,
    float: absl_flags.FloatParser,
}


class _Numbers(absl_flags.ArgumentParser):
    """Parses one or more numbers, separated by commas."""

    def __init__(self, number: absl_flags.ArgumentParser):
        self._number = number

    def parse(self, argument):
        return [self._number.parse(text) for text in str(argument).split(",")]


REMOVED = {  # flag of an earlier version -> advice
    "extend_positions": "for longer texts, fine-tune with --long_texts=windows",
    "trust_model": "omit it: no code of a model is run",
}
RENAMED = {"window_stride": "doc_stride"}  # former name -> name


@dataclasses.dataclass(frozen=True)
class Flag:
    """Definition of a flag, stored in its dataclass field.

    Attributes:
        name: str or None. Name without dashes. None: the name of the field.
        kind: type. bool, int, float, str or tuple.
        default: Value if the flag is not given.
        help: str. One sentence.
        at_least, at_most: float or None. Bounds of a number.
        choices: tuple of str. Allowed values of a string; () allows any.
        parse: callable or None. Checks a string and raises a UserError if the
            string is invalid. The value of the flag stays the string, which
            runs record.
        required: bool. Whether the flag must be given.
        resume: bool. Whether a resumed run needs the same value to repeat the
            same steps.
        path: bool. Whether the value is a path or a list of paths, in which
            `~` is expanded.
        per_worker: bool. Whether the value may differ between workers.
        several: bool. Whether a number may be a comma-separated list.
        topic: str. Topic of the flag in `--help`.
        where: tuple of str. Names of the nested fields that lead to the flag.
    """

    name: str | None = None
    kind: type = str
    default: Any = None
    help: str = ""
    at_least: float | None = None
    at_most: float | None = None
    choices: tuple[str, ...] = ()
    parse: Callable[[str], Any] | None = None
    required: bool = False
    resume: bool = False
    path: bool = False
    per_worker: bool = False
    several: bool = False
    topic: str = ""
    where: tuple[str, ...] = ()


def flag(default: Any, help: str, **options: Any) -> Any:
    """Declares a dataclass field that is a flag.

    Args:
        default: Value if the flag is not given.
        help: str. One sentence.
        **options: Other attributes of `Flag`. `name` defaults to the name of
            the field; `kind` and `where` are derived from the field.

    Returns:
        A dataclass field.
    """
    declared = Flag(default=default, help=help, **options)
    return dataclasses.field(default=default, metadata={_FLAG: declared})


def group(settings_class: type, **changes: dict[str, Any]) -> Any:
    """Declares a field of nested settings.

    Args:
        settings_class: type. A dataclass of flags.
        **changes: dict. Name of a flag -> attributes of `Flag` to change in
            this group, such as `{"default": 1000}` or `{"required": False}`.

    Returns:
        A dataclass field.
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
    """Yields the flags of a settings class, including nested flags."""
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
    """Parses a command line and reports all its mistakes at once.

    Args:
        argv: list of str. The command line, program name first.
        settings_class: type. A dataclass of flags. An optional field `given`
            receives the names of the flags on the command line. An optional
            field `grid` receives the flags with several values, as (name,
            values) pairs; the flag itself gets the first value.
        usage: str. The script's docstring, which `--help` prints.

    Returns:
        An instance of `settings_class`.

    Raises:
        UserError: Unknown flags, bad values, missing flags, arguments that
            are not flags, or flags that contradict each other.
        SystemExit: after `--help` or `--helpfull`.
    """
    declared = list(flags_of(settings_class))

    # --help works even if other flags are wrong.
    for word in argv[1:]:
        if word in HELP:
            print(f"{usage}{describe(declared, HELP[word])}", end="")
            raise SystemExit(0)

    argv = [_rename(word) for word in argv]

    # A new FlagValues: absl's global flags are left unchanged.
    values = absl_flags.FlagValues()
    unreadable = _read_words(argv, declared, values)
    mistakes = [*unreadable]
    missing = [
        f"--{one.name}"
        for one in declared
        if one.required and values[one.name].value is None
    ]
    if missing:
        mistakes.append(
            UserError(f"missing {', '.join(missing)}", fix="see --help")
        )

    # Some settings depend on which flags were given.
    settings = settings_class()
    if hasattr(settings, "given"):
        given = {one.name for one in declared if values[one.name].present}
        settings = dataclasses.replace(settings, given=frozenset(given))

    # Each value is checked alone, then flags are checked against each other.
    read, grid = {}, []
    for one in declared:
        value = values[one.name].value
        each = value if one.several else [value]
        for item in each:
            mistakes += raised_by(_check_value, one, item)
        read[one.name] = _value(one, each[0])
        if len(each) > 1:
            grid.append((one.name, tuple(each)))
    settings = replace(settings, **read)
    if grid:
        settings = dataclasses.replace(settings, grid=tuple(grid))

    # Flags that could not be read have defaults, which may contradict others.
    if not unreadable and hasattr(settings, "mistakes"):
        mistakes += settings.mistakes()
    _raise(mistakes)
    return settings


def check(settings: Any) -> None:
    """Checks the flags against each other, as `parse` does.

    Args:
        settings: An instance of a dataclass of flags with `mistakes`.

    Raises:
        UserError: Flags contradict each other. The first mistake is raised,
            with all others attached.
    """
    _raise([*settings.mistakes()])


def _raise(mistakes: list[UserError]) -> None:
    """Raises the first mistake, with the others attached."""
    if mistakes:
        first, *others = mistakes
        first.others = tuple(others)
        raise first


def _read_words(
    argv: list[str], declared: list[Flag], values: absl_flags.FlagValues
) -> list[UserError]:
    """Parses the arguments of a command line.

    Args:
        argv: list of str. The command line, program name first.
        declared: list of Flag. The flags.
        values: FlagValues. Receives the valid values; other flags keep their
            defaults.

    Returns:
        list of UserError. One error for each argument that cannot be parsed.
    """
    mistakes = []
    for one in declared:
        _define(one, values)
        # absl would stop at the first value of a wrong type.
        parser = values[one.name]
        parser.parse = functools.partial(_read_value, mistakes, parser.parse)
    values.set_gnu_getopt()  # flags may follow arguments
    try:
        words = values(argv, known_only=True)[1:]
    except (absl_flags.Error, ValueError) as error:
        return [*mistakes, UserError(str(error), fix="see --help")]

    words = [word for word in words if word != "--"]
    unknown = [word for word in words if word.startswith("-") and word != "-"]
    mistakes += [_unknown(word, declared, values) for word in unknown]
    if unknown:  # the next word may be its value
        return mistakes
    if words:
        mistakes.append(
            UserError(
                f"unexpected argument {words[0]!r}",
                fix="write --flag=value; quote values with spaces",
            )
        )
    return mistakes


def _read_value(
    mistakes: list[UserError], parse_value: Callable, text: str
) -> None:
    """Parses the value of a flag, or appends an error to `mistakes`."""
    try:
        parse_value(text)
    except absl_flags.Error as error:
        mistakes.append(UserError(str(error), fix="see --help"))


def _rename(word: str) -> str:
    """Replaces the former name of a flag in an argument."""
    name, equals, value = word.partition("=")
    new = RENAMED.get(name.removeprefix("--")) if name[:2] == "--" else None
    return f"--{new}{equals}{value}" if new else word


def _unknown(
    word: str, declared: list[Flag], values: absl_flags.FlagValues
) -> UserError:
    """Returns the error of an unknown flag, with similar flags."""
    try:
        values(["", word])
    except absl_flags.UnrecognizedFlagError as error:
        message, unknown = str(error), error.flagname

    if unknown in REMOVED:
        return UserError(f"--{unknown} was removed", fix=REMOVED[unknown])

    # absl suggests similar spellings; these are longer names that contain it.
    near = [f"--{one.name}" for one in declared if unknown in one.name][:3]
    fix = "see --help"
    if near and "Did you mean" not in message:
        fix = f"did you mean {' or '.join(near)}?"
    return UserError(message, fix=fix)


def describe(declared: list[Flag], topics: tuple[str, ...]) -> str:
    """Describes flags for `--help`, by topic.

    Args:
        declared: list of Flag. The flags.
        topics: tuple of str. The topics to show, in this order.
    """
    lines, shown = [], 0
    for topic in topics:
        group_of_topic = [
            one
            for one in declared
            if topic == (REQUIRED if one.required else one.topic)
        ]
        if group_of_topic:
            lines += ["", f"{topic}:"]
        for one in group_of_topic:
            name = f"[no]{one.name}" if one.kind is bool else one.name
            lines += textwrap.wrap(
                f"--{name}: {one.help}{_choices_and_default(one)}",
                width=80,
                initial_indent="  ",
                subsequent_indent="      ",
                break_on_hyphens=False,
            )
        shown += len(group_of_topic)

    if shown < len(declared):
        lines += ["", f"--helpfull shows {len(declared) - shown} more flags."]
    return "\n".join([*lines, ""])


def replace(settings: Any, **changes: Any) -> Any:
    """Returns a copy of settings with some values changed.

    Args:
        settings: An instance of a dataclass of flags.
        **changes: Name of a flag, nested or not -> new value.

    Returns:
        An instance of the same class.
    """
    where = {one.name: one.where for one in flags_of(type(settings))}

    # This is a bug, not a mistake of the user.
    unknown = set(changes) - set(where)
    assert not unknown, f"no flags of {type(settings).__name__}: {unknown}"
    for name, value in changes.items():
        settings = _with(settings, where[name], value)
    return settings


def _with(settings: Any, where: Sequence[str], value: Any) -> Any:
    """Returns a copy of settings with one nested field changed."""
    first, *inner = where
    if inner:
        value = _with(getattr(settings, first), inner, value)
    return dataclasses.replace(settings, **{first: value})


def as_dict(settings: Any, mark: str | None = None) -> dict[str, Any]:
    """Returns the values of flags by name.

    Args:
        settings: An instance of a dataclass of flags.
        mark: str or None. "resume", "path" or "per_worker" selects the flags
            with this attribute. None selects all flags.
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
    named: dict[str, Any] = {
        "name": one.name,
        "default": list(default) if isinstance(default, tuple) else default,
        "help": one.help,
        "flag_values": values,
    }
    if one.choices:
        absl_flags.DEFINE_enum(enum_values=one.choices, **named)
    elif one.several:
        absl_flags.DEFINE(_Numbers(_NUMBERS[one.kind]()), **named)
    else:
        _DEFINE[one.kind](**named)


def _choices_and_default(one: Flag) -> str:
    """Returns the end of a flag's description: choices and default."""
    parts = [", ".join(one.choices)] if one.choices else []
    default = one.default
    if isinstance(default, tuple):
        default = ",".join(default)
    if default not in (None, ""):
        shown = str(default).lower() if one.kind is bool else default
        parts.append(f"default: {shown}")
    return f" ({'; '.join(parts)})" if parts else ""


def _check_value(one: Flag, value: Any) -> None:
    """Checks the range of a number, or a string with the flag's `parse`.

    Raises:
        UserError: The value is out of range or invalid.
    """
    low, high = one.at_least, one.at_most
    if value is None:
        return
    if low is not None and not value >= low:  # rejects NaN too
        raise UserError(f"--{one.name}={value}", expected=f"at least {low}")
    if high is not None and not value <= high:
        raise UserError(f"--{one.name}={value}", expected=f"at most {high}")
    if one.parse:
        one.parse(value)


def _value(one: Flag, value: Any) -> Any:
    """Converts the value of an absl flag to the value of the field."""
    if one.path and value:
        return _expand(value)
    return tuple(value) if isinstance(value, list) else value


def _expand(paths: str) -> str:
    """Expands `~` and `~user` in paths, also in a list or after `name=`."""
    return re.sub(
        r"(?<![^,=])~[^/,]*", lambda home: os.path.expanduser(home[0]), paths
    )
