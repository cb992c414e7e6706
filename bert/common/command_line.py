"""Command lines: absl flags made from settings, their values, `--help`.

    settings = parse(sys.argv, Settings, __doc__)

`parse` reports all mistakes of a command line at once, also the `RULES`
(`bert/common/rules.py`) that it breaks.
"""

import functools
import os
import re
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

from absl import flags as absl_flags

from bert.common.errors import UserError, raise_all, raised_by
from bert.common.flags import (
    DATA,
    MODEL,
    OUTPUT,
    RARE,
    RENAMED,
    REQUIRED,
    TPU,
    TRAINING,
    BaseSettings,
    Flag,
    check_value,
    flags_of,
    read_time,
)
from bert.common.rules import Rule, rules_of, violations

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
REMOVED = {  # flag, or flag=value, of an earlier version -> advice
    "extend_positions": "for longer texts, fine-tune with --long_texts=windows",
    "schedule=clock": "choose --num_train_steps for the time, with --dry_run, "
    "and pass --schedule=linear",
    "to=litert": "load the model with `import bert`, and call "
    'export("model.tflite", format="litert") of its Keras network',
    "trust_model": "omit it: no code of a model is run",
}


class _Parser(absl_flags.ArgumentParser):
    """Parses the text of a flag with a function.

    Args:
        read: callable. Text -> value. Raises a ValueError for invalid texts.
    """

    def __init__(self, read: Callable[[str], Any]):
        self._read = read

    def parse(self, argument):
        return self._read(str(argument))


SettingsT = TypeVar("SettingsT", bound=BaseSettings)


def parse(
    argv: list[str], settings_class: type[SettingsT], usage: str
) -> SettingsT:
    """Parses a command line and reports all its mistakes at once.

    Args:
        argv: list of str. The command line, program name first.
        settings_class: type. A subclass of `BaseSettings`.
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
            rules = rules_of(settings_class)
            print(f"{usage}{describe(declared, HELP[word], rules)}", end="")
            raise SystemExit(0)

    # A new FlagValues: absl's global flags are left unchanged.
    values = absl_flags.FlagValues()
    unreadable = _read_words(argv, declared, values)
    mistakes = [*unreadable]
    missing = [
        f"--{one.name}"
        for one in declared
        if one.required and values[one.name].using_default_value
    ]
    if missing:
        mistakes.append(
            UserError(f"missing {', '.join(missing)}", fix="see --help")
        )

    # Each value is checked alone, then flags are checked against each other.
    read, grid = {}, []
    for one in declared:
        value = values[one.name].value
        listed = list(value or ()) if one.several else [value]
        each = [_value(one, x) for x in listed]
        for item in each:
            mistakes += raised_by(check_value, one, item)
        read[one.name] = each[0]
        if len(each) > 1:
            grid.append((one.name, tuple(each)))
    given = frozenset(x.name for x in declared if values[x.name].present)
    settings = settings_class(**read, given=given, grid=tuple(grid))

    # Flags that could not be read have defaults, which may contradict others.
    if not unreadable:
        mistakes += violations(settings)
    raise_all(mistakes)
    return settings


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
        parser.parse = functools.partial(
            _read_value, mistakes, one.name, parser.parse
        )
    values.set_gnu_getopt()  # flags may follow arguments
    try:
        # Former names may also be in a --flagfile.
        argv = values.read_flags_from_files(argv, force_gnu=False)
        argv = [_rename(word) for word in argv]
        words = values(argv, known_only=True)[1:]
    except (absl_flags.Error, ValueError) as error:
        return [*mistakes, UserError(str(error), fix="see --help")]

    # Runs record their command as UTF-8.
    mistakes += [
        UserError(f"{word!r} is not UTF-8", fix="rename the file")
        for word in argv
        if re.search(r"[\ud800-\udfff]", word)
    ]
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
    mistakes: list[UserError], name: str, parse_value: Callable, text: str
) -> None:
    """Parses the value of a flag, or appends an error to `mistakes`."""
    try:
        parse_value(text)
    except absl_flags.Error as error:
        removed = _removed(f"{name}={text}")
        mistakes.append(removed or UserError(str(error), fix="see --help"))


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
        read = functools.partial(_read_numbers, one.kind)
        absl_flags.DEFINE(_Parser(read), **named)
    elif one.is_time:
        absl_flags.DEFINE(_Parser(_read_seconds), **named)
    elif one.path:
        absl_flags.DEFINE(_Parser(_read_path), **named)
    else:
        _DEFINE[one.kind](**named)


def _read_numbers(kind: type, text: str) -> list[float]:
    """Reads one or more numbers, separated by commas."""
    return [_NUMBERS[kind]().parse(number) for number in text.split(",")]


def _read_seconds(text: str) -> float:
    """Reads a number of seconds, or a time such as 90m."""
    seconds = read_time(text)
    return absl_flags.FloatParser().parse(text) if seconds is None else seconds


def _read_path(text: str) -> str:
    """Checks a path. It is empty after an unset variable of the shell."""
    if not text.strip():
        raise ValueError("the path is empty")
    if re.search("(^|,)=", text):  # also "a,=b": no name before "="
        raise ValueError(
            "the path starts with =; write one =, or ./= for this name"
        )
    return text


def _removed(words: str) -> UserError | None:
    """Returns the error of a flag, or flag=value, of an earlier version."""
    if words not in REMOVED:
        return None
    return UserError(f"--{words} was removed", fix=REMOVED[words])


def _rename(word: str) -> str:
    """Replaces the former name of a flag in an argument."""
    # With one or two dashes, and with "no" before the name of a boolean.
    match = re.match(rf"(--?(?:no)?)({'|'.join(RENAMED)})(?=$|=)", word)
    return match[1] + RENAMED[match[2]] + word[match.end() :] if match else word


def _unknown(
    word: str, declared: list[Flag], values: absl_flags.FlagValues
) -> UserError:
    """Returns the error of an unknown flag, with similar flags."""
    try:
        values(["", word])
    except absl_flags.UnrecognizedFlagError as error:
        message, unknown = str(error), error.flagname

    if removed := _removed(unknown):
        return removed

    # absl suggests similar spellings; these are longer names that contain it.
    near = [f"--{one.name}" for one in declared if unknown in one.name][:3]
    fix = "see --help"
    if near and "Did you mean" not in message:
        fix = f"did you mean {' or '.join(near)}?"
    return UserError(message, fix=fix)


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


def describe(
    declared: list[Flag], topics: tuple[str, ...], rules: list[Rule]
) -> str:
    """Describes flags for `--help`, by topic, and the rules between them.

    Args:
        declared: list of Flag. The flags.
        topics: tuple of str. The topics to show, in this order.
        rules: list of Rule. The rules.
    """
    lines, shown = [], 0
    wrap = functools.partial(
        textwrap.wrap,
        width=80,
        initial_indent="  ",
        subsequent_indent="      ",
        break_on_hyphens=False,
    )
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
            lines += wrap(f"--{name}: {one.help}{_choices_and_default(one)}")
        shown += len(group_of_topic)

    if rules:
        lines += ["", "Rules:"]
    for rule in rules:
        lines += wrap(rule.text)
    if shown < len(declared):
        lines += ["", f"--helpfull shows {len(declared) - shown} more flags."]
    return "\n".join([*lines, ""])


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
