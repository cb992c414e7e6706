"""The page of all flags, made from the settings of the scripts.

python -m tests.helpers.flags_page > docs/flags.md
"""

import importlib

from bert.common import command_line, flags
from bert.tasks import finetuning_settings
from bert.training import settings

SCRIPTS = (
    "prepare_corpus",
    "create_vocab",
    "create_pretraining_data",
    "run_pretraining",
    "run_classifier",
    "run_squad",
    "run_ner",
    "run_swag",
    "run_similarity",
    "extract_features",
    "fill_mask",
    "predict",
    "convert_checkpoint",
    "export_hub",
    "doctor",
    "report",
    "demo",
    "serve",
)
SHARED = {  # title -> settings, and the title of those they contain
    "Training": (settings.Training, None),
    "Fine-tuning": (finetuning_settings.FineTuning, "Training"),
}
HEAD = """# Flags

Generated from the settings of the scripts by
`python -m tests.helpers.flags_page > docs/flags.md`. Flags are written
`--flag=value`; `--flag` and `--noflag` set a true or false one. Lists are
separated by commas.
"""


def page() -> str:
    """The text of docs/flags.md."""
    parts = [HEAD]
    for title, (group, contained) in SHARED.items():
        known = rows(SHARED[contained][0]) if contained else {}
        parts.append(section(title, group, known, contained))
    for name in SCRIPTS:
        group = importlib.import_module(name).Settings
        names = {one.name for one in flags.flags_of(group)}
        contained, known = None, {}
        for title, (shared, _) in SHARED.items():
            if {one.name for one in flags.flags_of(shared)} <= names:
                contained, known = title, rows(shared)
        parts.append(section(f"{name}.py", group, known, contained))
    return "\n".join(parts)


def rows(group: type) -> dict[str, str]:
    """Flag -> its line of the list, in the order of `--helpfull`."""
    topics = command_line.HELP["--helpfull"]
    declared = sorted(
        flags.flags_of(group),
        key=lambda x: topics.index(flags.REQUIRED if x.required else x.topic),
    )
    return {one.name: row(one) for one in declared}


def row(one: flags.Flag) -> str:
    """The line of a flag: name, meaning, range and default."""
    meaning = one.help
    if one.choices:
        listed = ", ".join(f"`{choice}`" for choice in one.choices)
        meaning += f" One of {listed}."
    if one.at_least is not None:
        meaning += f" At least {one.at_least}"
        meaning += "." if one.at_most is None else f", at most {one.at_most}."
    if one.required:
        meaning += " Required."
    elif default := shown(one.default):
        meaning += f" Default: {default}."
    meaning = meaning.replace("*", "\\*")  # no emphasis
    return f"- `--{one.name}`: {meaning}"


def shown(value) -> str:
    """A default as it is written on the command line."""
    if value is None or value == "":
        return ""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def section(title, group, known, contained) -> str:
    """A heading and the list of the flags that are not known already."""
    lines = [f"## {title}", ""]
    if contained:
        link = contained.lower()
        lines += [f"The flags of [{contained}](#{link}), and:", ""]
    lines += [x for name, x in rows(group).items() if known.get(name) != x]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
