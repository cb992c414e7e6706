"""Which records run_pretraining reads, and whether they go together."""

import dataclasses
import os

from absl import flags

import common_flags
from data import features, manifest
from data.settings import Settings
from errors import UserError
from modeling.config import BertConfig
from progress import say

_OF_MASKS = (
    "max_predictions_per_seq",
    "masked_lm_prob",
    "do_whole_word_mask",
    "max_ngram",
)


@dataclasses.dataclass(frozen=True)
class Records:
    """Shards that are read together.

    Attributes:
        files: their paths.
        listed: the manifest's entry of each, or None.
    """

    files: list[str]
    listed: list[dict | None]


@dataclasses.dataclass(frozen=True)
class Inputs:
    """All that a run reads, checked.

    Attributes:
        train: what it learns from.
        held_out: what it is evaluated on; None: on `train`.
        schema: features of the records.
        masks: how new masks are drawn at each epoch, or None.
        do_lower_case: casing of the records; None without a manifest.
        vocab_file: vocabulary of the records; None without a manifest.
    """

    train: Records
    held_out: Records | None
    schema: dict[str, tuple[str, int]]
    masks: Settings | None
    do_lower_case: bool | None
    vocab_file: str | None


def read_inputs(values: flags.FlagValues, config: BertConfig) -> Inputs:
    """Finds the records that the flags name.

    Raises:
        UserError: they do not go together, or not with the config.
    """
    train = find_records(values.input_file, "input_file")
    held_out = None
    if values.eval_input_file:
        held_out = find_records(values.eval_input_file, "eval_input_file")
    listed = train.listed + (held_out.listed if held_out else [])
    runs = [run for run in listed if run]
    check_vocabulary(runs, config, values.bert_config_file)
    return Inputs(
        train=train,
        held_out=held_out,
        schema=read_schema(values, listed, config),
        masks=read_masks(values, train) if values.dynamic_masking else None,
        do_lower_case=runs[0]["do_lower_case"] if runs else None,
        vocab_file=runs[0]["vocab_file"] if runs else None,
    )


def find_records(patterns: str, flag: str) -> Records:
    """Lists shards and looks each up in its folder's manifest."""
    files = common_flags.list_files(patterns, flag)
    return Records(files, [manifest.manifest_of(path) for path in files])


def length_from(values: flags.FlagValues, runs: list[dict], name: str) -> int:
    """A length from the flag and the manifests, which must agree."""
    wanted = {run[name] for run in runs}
    if values[name].present:
        wanted.add(values[name].value)
    if len(wanted) > 1:
        listed = ", ".join(str(run[name]) for run in runs)
        raise UserError(
            f"--{name}={values[name].value}, the records have {listed}",
            expected="one length",
            fix="leave the flag out, or make the records again",
        )
    return wanted.pop() if wanted else values[name].value


def read_schema(
    values: flags.FlagValues, listed: list[dict | None], config: BertConfig
) -> dict[str, tuple[str, int]]:
    """The features of the records, which all must have."""
    runs = [run for run in listed if run]
    lengths = {
        name: length_from(values, runs, name)
        for name in ("max_seq_length", "max_predictions_per_seq")
    }
    if lengths["max_seq_length"] > config.max_position_embeddings:
        raise UserError(
            f"--max_seq_length={lengths['max_seq_length']}",
            expected="at most max_position_embeddings, "
            f"{config.max_position_embeddings} ({values.bert_config_file})",
        )
    packed = [bool(run and run.get("pack_sequences")) for run in listed]
    if not any(packed):
        return features.pretraining_schema(**lengths)
    if not all(packed):
        raise UserError(
            f"{sum(packed)} of {len(packed)} files have packed rows",
            expected="all or none, those of --eval_input_file too",
            fix="make the others with --pack_sequences",
        )
    return features.packed_schema(
        **lengths, max_sequences_per_row=runs[0]["max_sequences_per_row"]
    )


def read_masks(values: flags.FlagValues, train: Records) -> Settings:
    """How the records were masked, from their manifest.

    Raises:
        UserError: there is no manifest, the records were masked in different
            ways, or by words that the records do not show.
    """
    made = set()
    for path, run in zip(train.files, train.listed, strict=True):
        if run is None:
            raise UserError(
                "--dynamic_masking: not in a manifest",
                path=path,
                expected="records of create_pretraining_data.py",
            )
        if run.get("word_boundaries"):
            raise UserError(
                "--dynamic_masking: masked by --word_boundaries",
                path=path,
                expected="words that the pieces show",
                fix="raise --dupe_factor of the records instead",
            )
        made.add(
            Settings(
                **{name: run[name] for name in _OF_MASKS if name in run},
                random_seed=values.random_seed,
            )
        )
    if len(made) > 1:
        raise UserError(
            "--dynamic_masking: the files were masked in different ways",
            path=",".join(train.files),
            expected="records of one command line",
        )
    return made.pop()


def check_vocabulary(
    runs: list[dict], config: BertConfig, config_file: str
) -> None:
    """Refuses records of several vocabularies, or of a larger one."""
    made = {
        (run["vocab_sha256"], run["do_lower_case"]): run["vocab_file"]
        for run in runs
    }
    if len(made) > 1:
        listed = [
            f"{path} with do_lower_case={lower}"
            for (_, lower), path in made.items()
        ]
        raise UserError(
            f"the records were made with {' and '.join(sorted(listed))}",
            expected="one vocabulary and casing",
        )
    for run in runs:
        if run["vocab_size"] > config.vocab_size:
            raise UserError(
                f"vocab_size is {config.vocab_size}",
                path=config_file,
                expected=f"at least {run['vocab_size']}, the tokens of "
                f"{run['vocab_file']}",
            )


def count_records(
    records: Records, schema: dict[str, tuple[str, int]], vocab_size: int
) -> int:
    """Records in all shards; those that no manifest lists are checked."""
    from data import reader

    count = 0
    for path, run in zip(records.files, records.listed, strict=True):
        if run:
            count += run["shards"][os.path.basename(path)]["records"]
        else:
            say(f"{path}: not in a manifest, checking every record")
            count += reader.check_records(path, schema, vocab_size)
    if count == 0:
        raise UserError(
            "no records", path=",".join(records.files), expected="TFRecords"
        )
    return count
