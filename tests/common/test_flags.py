import dataclasses
import decimal
import importlib
import math
import pathlib

import hypothesis
import hypothesis.strategies as st
import pytest
from absl import flags as absl_flags

import extract_features
import run_classifier
import run_squad
from bert.common import command_line, flags
from bert.common.errors import UserError
from bert.common.flags import BaseSettings, changed, flag

ROOT = pathlib.Path(__file__).parents[2]
SCRIPTS = sorted(path.stem for path in ROOT.glob("*.py"))


@dataclasses.dataclass(frozen=True)
class Text:
    vocab_file: str | None = flag(None, "Vocabulary.", required=True, path=True)
    max_seq_length: int = flag(128, "Tokens of a sequence.", at_least=3)
    do_lower_case: bool = flag(True, "Lower-case.")


@dataclasses.dataclass(frozen=True)
class Settings(BaseSettings, Text):
    max_seq_length: int = changed(Text, "max_seq_length", default=384)
    source: str | None = flag(None, "Format.")
    labels: tuple[str, ...] | None = flag(None, "Labels.")
    header: bool | None = flag(None, "Names the columns.")
    rate: float = flag(0.5, "Rate.", at_least=0.0, at_most=1.0, resume=True)
    kind: str = flag("any", "Kind.", choices=("any", "entities"))
    wait: float = flag(5.0, "Seconds.", at_least=0.5, is_time=True)


def parse(*words):
    return command_line.parse(
        ["script", "--vocab_file=v", *words], Settings, "Usage."
    )


def test_defaults_are_those_of_the_fields():
    assert parse() == Settings("v", given=frozenset(["vocab_file"]))
    assert Settings().max_seq_length == 384


def test_values_have_the_types_of_the_fields():
    settings = parse(
        "--source=google",
        "--labels=a,b",
        "--noheader",
        "--rate=1",
        "--max_seq_length=7",
        "--kind=entities",
        "--do_lower_case",  # its default is given, too
    )
    assert settings.source == "google"
    assert settings.labels == ("a", "b")
    assert settings.header is False
    assert settings.rate == 1.0 and isinstance(settings.rate, float)
    assert settings.max_seq_length == 7
    assert settings.given == {
        "vocab_file", "source", "labels", "header", "rate", "max_seq_length",
        "kind", "do_lower_case",
    }  # fmt: skip


def test_a_number_may_be_several_where_a_script_says_so():
    @dataclasses.dataclass(frozen=True)
    class Grid(BaseSettings, Text):
        max_seq_length: int = changed(Text, "max_seq_length", several=True)

    def read(*words):
        settings = command_line.parse(
            ["script", "--vocab_file=v", *words], Grid, ""
        )
        return settings.max_seq_length, settings.grid

    assert read() == (128, ())
    assert read("--max_seq_length=7") == (7, ())
    assert read("--max_seq_length", "7,5") == (7, (("max_seq_length", (7, 5)),))
    for value, message in (("7,x", "not .*'x'|'x'"), ("7,2", "at least 3")):
        with pytest.raises(UserError, match=message):
            read(f"--max_seq_length={value}")


@pytest.mark.parametrize(
    ("words", "messages"),
    [
        (["--kind=words"], ["flag --kind=words: value should be one of <any|"]),
        (["--unknown=1", "2"], ["Unknown command line flag 'unknown'; see --"]),
        (["loose"], ["unexpected argument 'loose'; write --flag=value; quote"]),
        (["--", "-"], ["unexpected argument '-'; "]),
        (
            ["--source=\udcff", "--labels=a,\udcff"],
            [
                r"'--source=\udcff' is not UTF-8; rename the file",
                r"'--labels=a,\udcff' is not UTF-8; rename the file",
            ],
        ),
        (
            ["--noheader=true"],
            ["--noheader=true does not take an argument; see"],
        ),
        (["--max_seq_length=7,5"], ["flag --max_seq_length=7,5: invalid lit"]),
        (
            ["--rate=high", "--zzz", "--nolabels", "--max_seq_length=2", "x"],
            [
                "flag --rate=high: could not convert string to float: 'high'; ",
                "Unknown command line flag 'zzz'; see --help",
                "Unknown command line flag 'nolabels'. Did you mean: labels ?;",
                "--max_seq_length=2; expected at least 3",
            ],
        ),
        (
            ["--max_seq_lenght=7"],
            ["Unknown command line flag 'max_seq_lenght'"],
        ),
        (
            ["--length=7"],
            [
                "Unknown command line flag 'length'; did you mean "
                "--max_seq_length?"
            ],
        ),
        (["--wait=7mm"], ["flag --wait=7mm: could not convert string to"]),
        (["--plans=7"], ["Unknown command line flag 'plans'; see --help"]),
    ],
)
def test_all_mistakes_of_a_command_line_are_told_at_once(words, messages):
    with pytest.raises(UserError) as caught:
        parse(*words)
    found = [str(error) for error in (caught.value, *caught.value.others)]
    for line, message in zip(found, messages, strict=True):
        assert line.startswith(message)


@hypothesis.given(value=st.floats())
@hypothesis.example(value=0.0)
@hypothesis.example(value=1.0)
def test_a_number_is_within_its_bounds(value):
    word = f"--rate={value}"
    if 0 <= value <= 1:
        assert parse(word).rate == value
        return
    expected = "at most 1.0" if value > 1 else "at least 0.0"
    if not math.isfinite(value):
        expected = "a finite number"
    with pytest.raises(UserError) as caught:
        parse(word)
    assert str(caught.value) == f"{word}; expected {expected}"


@hypothesis.given(
    st.decimals(0, 1000, places=1), st.sampled_from(["", "s", "m", "h"])
)
@hypothesis.example(decimal.Decimal(0), "s")
def test_a_time_may_have_a_unit(number, unit):
    seconds = float(number) * {"m": 60, "h": 3600}.get(unit, 1)
    word = f"--wait={number}{unit}"
    if seconds >= 0.5:
        assert parse(word).wait == seconds
        return
    with pytest.raises(UserError) as caught:
        parse(word)
    assert str(caught.value) == f"--wait={seconds}; expected at least 0.5"


def test_mistakes_of_flags_and_of_rules_are_told_together(run_script):
    code, _, err = run_script(
        run_classifier,
        "--do_train",
        "--task_name=csv",
        "--train_file=train.csv",
        "--max_time=soon",
        "--eval_fraction=0.7",
        "--text_column=text",
        "--label_column=label",
        "--multi_label",
        "--regression",
    )
    assert code == 2
    assert err.splitlines() == [
        "error: missing --output_dir; see --help",
        "error: --max_time=soon; expected a time such as 90m, 36h or 30s",
        "error: --eval_fraction=0.7; expected at most 0.5",
        "error: --multi_label and --regression; expected one of them",
    ]


@dataclasses.dataclass(frozen=True)
class Cores(BaseSettings):
    topic = flags.TPU
    cores: int | None = flag(None, "Cores of the TPU.")
    rate: float = flag(0.5, "Rate.", topic=flags.TRAINING)


@dataclasses.dataclass(frozen=True)
class Grouped(Cores, Text):
    topic = flags.OUTPUT
    max_seq_length: int = changed(Text, "max_seq_length", default=384)
    kind: str = flag("any", "Kind.", choices=("any", "entities"))
    header: bool = flag(False, "Names.", topic=flags.RARE)
    labels: tuple[str, ...] = flag(("a", "b"), "Labels.")


SHORT_HELP = """Usage.
Required:
  --vocab_file: Vocabulary.

Data:
  --max_seq_length: Tokens of a sequence. (default: 384)
  --[no]do_lower_case: Lower-case. (default: true)

Training:
  --rate: Rate. (default: 0.5)

Output:
  --kind: Kind. (any, entities; default: any)
  --labels: Labels. (default: a,b)

Rare:
  --[no]header: Names. (default: false)
"""
SHORT_END = "\n--helpfull shows 1 more flags.\n"
FULL_END = "\nTPU and clusters:\n  --cores: Cores of the TPU.\n"


@pytest.mark.parametrize(
    ("word", "end"),
    [("--help", SHORT_END), ("-h", SHORT_END), ("--helpfull", FULL_END)],
)
def test_help_groups_the_flags_by_topic(capsys, word, end):
    with pytest.raises(SystemExit):
        command_line.parse(["script", word], Grouped, "Usage.")
    assert capsys.readouterr().out == SHORT_HELP + end


CLASSIFIER = (
    *("--output_dir=run", "--do_train", "--task_name=tsv"),
    *("--train_file=t.tsv", "--long_texts=windows"),
)
SEVERAL = (*CLASSIFIER, "--do_eval", "--eval_file=e.tsv", "--eval_steps=5")
FEATURES = ("--input_file=t.txt", "--output_file=e", "--init_checkpoint=c")
FORMER = {
    "best_metric": (run_classifier, SEVERAL, "loss"),
    "eval_share": (run_classifier, (*CLASSIFIER, "--do_eval"), "0.25"),
    "mix_layers": (extract_features, FEATURES, "sum"),
    "plan": (run_classifier, CLASSIFIER, None),
    "reference": (run_classifier, CLASSIFIER, None),
    "train_for": (run_classifier, CLASSIFIER, "7m"),
    "window_stride": (run_classifier, CLASSIFIER, "11"),
}


@pytest.mark.parametrize("old", flags.RENAMED)
def test_the_former_name_of_a_flag_is_read(old, tmp_path):
    script, words, value = FORMER[old]
    new = flags.RENAMED[old]

    def read(*more):
        return command_line.parse(["", *words, *more], script.Settings, "")

    if value is None:
        forms = [([f"--{x}{old}"], [f"--{x}{new}"]) for x in ("", "no")]
        forms.append(([f"--{old}=false"], [f"--no{new}"]))
    else:
        told = [f"--{new}={value}"]
        forms = [([f"--{old}={value}"], told), ([f"--{old}", value], told)]
        forms.append(([f"-{old}={value}"], told))
    listed = tmp_path / "flags.txt"
    listed.write_text(f"{forms[0][0][0]}\n")
    forms.append(([f"--flagfile={listed}"], forms[0][1]))
    for former, current in forms:
        settings = read(*former)
        assert settings == read(*current) and new in settings.given


def test_a_flag_that_is_not_enforced_may_be_listed_as_required(capsys):
    with pytest.raises(SystemExit):
        command_line.parse(["script", "--help"], run_classifier.Settings, "")
    required = capsys.readouterr().out.split("\n\n")[0]
    for name in ("task_name", "data_dir", "vocab_file", "output_dir"):
        assert f"  --{name}: " in required


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("~", "{home}"),
        ("~/v,en=~/w*.gz,a~b", "{home}/v,en={home}/w*.gz,a~b"),
        ("~/a:90,~/b:10:64", "{home}/a:90,{home}/b:10:64"),
        ("./~/a", "./~/a"),
        ("a~/b,~no-such-user/c", "a~/b,~no-such-user/c"),
    ],
)
def test_home_is_expanded_in_paths_alone(monkeypatch, given, expected):
    monkeypatch.setenv("HOME", "/home/anna")
    words = ["script", f"--vocab_file={given}", f"--source={given}"]
    settings = command_line.parse(words, Settings, "")
    assert settings.vocab_file == expected.format(home="/home/anna")
    assert settings.source == given


@pytest.mark.parametrize("name", SCRIPTS)
def test_flags_that_are_named_as_files_are_paths(name):
    script = importlib.import_module(name)
    endings = ("_file", "_dir", "_path", "checkpoint", "_vocab", "_handle")
    for x in flags.flags_of(script.Settings):
        assert x.path or not x.name.endswith(endings), x.name


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_empty_path_or_a_number_without_bounds_is_a_mistake(name):
    settings_class = importlib.import_module(name).Settings
    for x in flags.flags_of(settings_class):
        values = ["inf", "-inf", "nan", "1e13", "-1e13"] * (x.kind is float)
        values += ["", " "] * (x.path or x.name == "host")
        values += ["=folder", "a,=folder"] * x.path
        for value in values:
            with pytest.raises(UserError) as caught:
                command_line.parse(
                    ["", f"--{x.name}={value}"], settings_class, ""
                )
            lines = map(str, (caught.value, *caught.value.others))
            assert sum(f"--{x.name}=" in y for y in lines) == 1


def test_values_by_mark():
    settings = parse("--rate=0.75")
    assert flags.as_dict(settings, "resume") == {"rate": 0.75}
    assert len(flags.as_dict(settings)) == 9
    text = {"vocab_file": "v", "max_seq_length": 384, "do_lower_case": True}
    assert flags.as_dict(settings, of=Text) == text


def test_what_workers_may_have_of_their_own_is_marked():
    settings = [script.Settings for script in (run_classifier, run_squad)]
    shared = {"cluster_timeout", "distribution", "profile_steps", "max_time"}
    assert [set(flags.as_dict(x(), "per_worker")) for x in settings] == [
        {"export_dir", "glue_dir", *shared},
        {"export_dir", *shared},
    ]


def test_absl_flags_of_the_process_stay_as_they_are():
    before = set(absl_flags.FLAGS)
    parse()
    assert set(absl_flags.FLAGS) == before
