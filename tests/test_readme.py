"""The README's reference of flags is complete and true."""

import importlib
import pathlib
import re

import pytest
from absl import flags

ROOT = pathlib.Path(__file__).parents[1]
SCRIPTS = (
    "prepare_corpus",
    "create_vocab",
    "create_pretraining_data",
    "run_pretraining",
    "run_classifier",
    "run_squad",
    "run_ner",
    "run_swag",
    "doctor",
    "predict",
    "export_hub",
    "convert_checkpoint",
    "extract_features",
    "fill_mask",
)


FINE_TUNING = ("run_classifier", "run_squad", "run_ner", "run_swag")


def rows(script):
    """Flag -> its default as the README shows it."""
    shared = {}
    if script in ("run_pretraining", *FINE_TUNING):
        shared |= section("**Training**")
    if script in FINE_TUNING:
        shared |= section("**Fine-tuning**")
    return shared | section(f"**{script}.py**")


def section(title):
    """Flag -> default in a table."""
    text = (ROOT / "README.md").read_text()
    section = text.split("## Reference of flags")[1]
    section = section.split(title)[1].split("\n**")[0]
    found = {}
    for line in section.splitlines():
        if not line.startswith("|"):
            continue
        cells = [cell.strip() for cell in line.split("|")]
        for name in re.findall(r"`--(\w+)`", cells[1]):
            found[name] = cells[2]
    return found


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_flag_is_listed_with_its_default(script):
    values = flags.FlagValues()
    importlib.import_module(script).define_flags(values)
    shown = rows(script)
    assert set(shown) == set(values)
    for name, default in shown.items():
        if "," in default:
            continue  # several flags in one row
        value = values[name].default
        expected = {True: "true", False: "false", None: ("", "required")}
        if isinstance(value, int | float) and not isinstance(value, bool):
            assert float(default) == value, name
        elif isinstance(value, str):
            assert default == value, name
        else:
            assert default in expected[value], name


@pytest.mark.parametrize("script", SCRIPTS)
def test_required_flags_are_said_to_be_required(script):
    values = flags.FlagValues()
    importlib.import_module(script).define_flags(values)
    shown = {name for name, d in rows(script).items() if d == "required"}
    assert shown == {
        name
        for name in values
        if any("other than None" in v.message for v in values[name].validators)
    }


def test_the_walk_names_functions_that_exist():
    text = (ROOT / "README.md").read_text()
    walk = text.split("## The walk of the data")[1].split("\n## ")[0]
    names = re.findall(r"`((?:data|modeling|training)\.[\w.]+)`", walk)
    assert len(names) > 15
    for name in names:
        parts = name.split(".")
        found = importlib.import_module(".".join(parts[:2]))
        for part in parts[2:]:
            found = getattr(found, part)
