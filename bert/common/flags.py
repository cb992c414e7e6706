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
tells all mistakes of a command line at once: `mistakes` are flags that
contradict each other. `--help` sorts flags by topic: that of the field, else
`topic` of its dataclass.
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
    """Reads one or more numbers, with commas between them."""

    def __init__(self, number: absl_flags.ArgumentParser):
        self._number = number

    def parse(self, argument):
        return [self._number.parse(text) for text in str(argument).split(",")]


REMOVED = {  # flag of an earlier version -> what to do instead
    "extend_positions": "for longer texts, fine-tune with --long_texts=windows",
    "trust_model": "omit it: no code of a model is run",
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
        parse: reads a string and raises a UserError if it cannot; the value
            of the flag stays the string, as runs record it.
        required: whether the flag must be given.
        resume: whether a resumed run needs the same value to take the same
            steps.
        path: whether the value is a path or several; `~` is expanded.
        per_worker: whether workers may have other values.
        several: whether a number may be several, with commas between them.
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
    parse: Callable[[str], Any] | None = None
    required: bool = False
    resume: bool = False
    path: bool = False
    per_worker: bool = False
    several: bool = False
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
    """Parses a command line, and tells all its mistakes at once.

    Args:
        argv: the command line, program name first.
        settings_class: a dataclass of flags; its field `given`, if it has
            one, receives the names of the flags on the command line, and
            `grid` the names and values of those with several values, of which
            the flag itself has the first.
        usage: the script's docstring, which `--help` prints.

    Returns:
        an instance of `settings_class`.

    Raises:
        UserError: unknown flags, bad values, missing flags, arguments that
            are not flags, or flags that contradict each other.
        SystemExit: after `--help` or `--helpfull`.
    """
    declared = list(flags_of(settings_class))

    # Who asks for help gets it, whatever else is wrong.
    for word in argv[1:]:
        if word in HELP:
            print(f"{usage}{describe(declared, HELP[word])}", end="")
            raise SystemExit(0)

    # Flags of this call alone: those that absl shares stay as they are.
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

    # Some settings ask which flags were given.
    settings = settings_class()
    if hasattr(settings, "given"):
        given = {one.name for one in declared if values[one.name].present}
        settings = dataclasses.replace(settings, given=frozenset(given))

    # Each value alone; then all of them against each other.
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

    # What could not be read would seem to contradict the rest.
    if not unreadable and hasattr(settings, "mistakes"):
        mistakes += settings.mistakes()
    _raise(mistakes)
    return settings


def check(settings: Any) -> None:
    """Checks the flags against each other, as `parse` does.

    Args:
        settings: an instance of a dataclass of flags with `mistakes`.

    Raises:
        UserError: they contradict each other; all mistakes at once.
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
    """Reads the words of a command line.

    Args:
        argv: the command line, program name first.
        declared: the flags.
        values: receives the values that can be read; the others keep their
            defaults.

    Returns:
        a mistake for each word that cannot be read.
    """
    mistakes = []
    for one in declared:
        _define(one, values)
        # absl would stop at the first value that is not of its type.
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
    """Reads the value of a flag, or adds a mistake."""
    try:
        parse_value(text)
    except absl_flags.Error as error:
        mistakes.append(UserError(str(error), fix="see --help"))


def _unknown(
    word: str, declared: list[Flag], values: absl_flags.FlagValues
) -> UserError:
    """The mistake of an unknown flag, with the flags that it may mean."""
    try:
        values(["", word])
    except absl_flags.UnrecognizedFlagError as error:
        message, unknown = str(error), error.flagname

    if unknown in REMOVED:
        return UserError(f"--{unknown} was removed", fix=REMOVED[unknown])

    # absl finds misspelt names; these are longer names with the same word.
    near = [f"--{one.name}" for one in declared if unknown in one.name][:3]
    fix = "see --help"
    if near and "Did you mean" not in message:
        fix = f"did you mean {' or '.join(near)}?"
    return UserError(message, fix=fix)


def describe(declared: list[Flag], topics: tuple[str, ...]) -> str:
    """Describes flags for `--help`, by topic.

    Args:
        declared: the flags.
        topics: the topics to show.
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
    """Returns settings with other values.

    Args:
        settings: an instance of a dataclass of flags.
        **changes: name of a flag, nested or not -> new value.

    Returns:
        an instance of the same class.
    """
    where = {one.name: one.where for one in flags_of(type(settings))}

    # A mistake of the code, not of the user.
    unknown = set(changes) - set(where)
    assert not unknown, f"no flags of {type(settings).__name__}: {unknown}"
    for name, value in changes.items():
        settings = _with(settings, where[name], value)
    return settings


def _with(settings: Any, where: Sequence[str], value: Any) -> Any:
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
    """The end of a flag's description."""
    parts = [", ".join(one.choices)] if one.choices else []
    default = one.default
    if isinstance(default, tuple):
        default = ",".join(default)
    if default not in (None, ""):
        shown = str(default).lower() if one.kind is bool else default
        parts.append(f"default: {shown}")
    return f" ({'; '.join(parts)})" if parts else ""


def _check_value(one: Flag, value: Any) -> None:
    """Checks the range of a value, and reads a string that has a parser.

    Raises:
        UserError: it is out of range, or cannot be read.
    """
    low, high = one.at_least, one.at_most
    if value is None:
        return
    if low is not None and not value >= low:  # as is NaN
        raise UserError(f"--{one.name}={value}", expected=f"at least {low}")
    if high is not None and not value <= high:
        raise UserError(f"--{one.name}={value}", expected=f"at most {high}")
    if one.parse:
        one.parse(value)


def _value(one: Flag, value: Any) -> Any:
    """Converts the value of an absl flag to that of a field."""
    if one.path and value:
        return _expand(value)
    return tuple(value) if isinstance(value, list) else value


def _expand(paths: str) -> str:
    """Expands `~` and `~user` in paths, also in a list or after `name=`."""
    return re.sub(
        r"(?<![^,=])~[^/,]*", lambda home: os.path.expanduser(home[0]), paths
    )
