"""Corpus + vocabulary -> TFRecord shards of masked sentence pairs.

The corpus has one sentence a line and a blank line between documents; files
that end in .gz are decompressed. Example:

    python create_pretraining_data.py --input_file='wiki/*.txt.gz' \
        --output_file=records/wiki.tfrecord --vocab_file=vocab.txt
"""

import dataclasses
import os
import sys

from absl import flags

import common_flags
import storage
import text_flags
from data import buckets, manifest, pretraining, vocabulary
from data import corpus as corpus_lib
from errors import UserError
from progress import Progress, say


def define_flags(values: flags.FlagValues) -> None:
    """Defines this script's flags."""
    for name, meaning in (
        ("input_file", "Corpus: files and globs, separated by commas."),
        ("output_file", "TFRecord files to write, separated by commas."),
    ):
        flags.DEFINE_string(
            name, None, meaning, flag_values=values, required=True
        )
    text_flags.define_text(values)
    common_flags.define_lengths(values)
    common_flags.define_seed(values)
    flags.DEFINE_bool(
        "do_whole_word_mask",
        False,
        "Mask all pieces of a word or none.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "num_processes",
        None,
        "Processes that make records; default: one for each core.",
        flag_values=values,
        lower_bound=1,
    )
    flags.DEFINE_string(
        "runner",
        None,
        "Make records with Apache Beam on this runner, such as DirectRunner "
        "or DataflowRunner; Beam's own options follow --.",
        flag_values=values,
    )
    flags.DEFINE_integer(
        "dupe_factor",
        10,
        "How often the corpus is gone through, with other masks.",
        flag_values=values,
        lower_bound=1,
    )
    for name, default, meaning in (
        ("masked_lm_prob", 0.15, "Share of the pieces that is masked."),
        ("short_seq_prob", 0.1, "Share of documents cut into short rows."),
    ):
        flags.DEFINE_float(
            name,
            default,
            meaning,
            flag_values=values,
            lower_bound=0.0,
            upper_bound=1.0,
        )


@dataclasses.dataclass(frozen=True)
class Job:
    """What the command line asks for."""

    input_files: list[str]
    output_files: list[str]
    recipe: buckets.Recipe
    num_processes: int
    runner: str | None
    options: list[str]


def split_options(argv: list[str]) -> tuple[list[str], list[str]]:
    """Our words of the command line, and Beam's, which follow `--`."""
    if "--" not in argv:
        return argv, []
    here = argv.index("--")
    return argv[:here], argv[here + 1 :]


def read_flags(argv: list[str]) -> Job:
    """Reads and checks the command line."""
    argv, options = split_options(argv)
    values = common_flags.parse(argv, define_flags, __doc__)
    outputs = values.output_file.split(",")
    folders = {os.path.dirname(storage.absolute(path)) for path in outputs}
    if len(folders) > 1 or len(set(outputs)) < len(outputs):
        raise UserError(
            f"--output_file={values.output_file}",
            expected="different files in one folder",
        )
    if any(not path or storage.is_folder(path) for path in outputs):
        raise UserError(
            f"--output_file={values.output_file!r} names a folder",
            expected="a file name, such as folder/wiki.tfrecord",
        )
    manifest.read_runs(folders.pop())  # a damaged one is told now
    if options and not values.runner:
        raise UserError(
            f"{options[0]!r} after -- is for Beam", fix="pass --runner too"
        )
    settings = pretraining.Settings(
        **{
            field.name: values[field.name].value
            for field in dataclasses.fields(pretraining.Settings)
        }
    )
    inputs = common_flags.list_files(values.input_file, "input_file")
    return Job(
        input_files=inputs,
        output_files=outputs,
        recipe=buckets.Recipe(
            values.vocab_file,
            values.do_lower_case,
            settings,
            source=",".join(inputs),
        ),
        num_processes=values.num_processes or os.cpu_count() or 1,
        runner=values.runner,
        options=options,
    )


def make_parts(work: list[buckets.Bucket], job: Job) -> list[dict[str, int]]:
    """Makes the records of every bucket, here or on an engine."""
    from data import runners

    if job.runner:
        return runners.run_beam(work, job.recipe, job.runner, job.options)
    copies = job.recipe.settings.dupe_factor
    progress = Progress("records", len(work) * copies, "passes")
    return runners.run_local(
        work, job.recipe, job.num_processes, progress.update
    )


def write_records(job: Job, corpus: corpus_lib.Corpus) -> dict[str, int]:
    """Writes shards and manifest; returns what was counted."""
    from data import records

    settings = job.recipe.settings
    with records.ShardWriter(job.output_files) as writer:
        paths = corpus_lib.deal(corpus, settings.random_seed, writer.scratch)
        work = [
            buckets.Bucket(number, path, writer.part_path(number))
            for number, path in enumerate(paths)
        ]
        parts = make_parts(work, job)
        counts = [part.pop("records") for part in parts]
        shards = writer.finish(counts, settings.random_seed)
    totals: dict[str, int] = {}
    for part in parts:
        buckets.add_counts(totals, part)
    run = {
        **dataclasses.asdict(settings),
        "do_lower_case": job.recipe.do_lower_case,
        "vocab_size": len(vocabulary.read_vocabulary(job.recipe.vocab_file)),
        "input_files": [os.path.basename(p) for p in job.input_files],
        "statistics": totals,
        "shares": buckets.shares(totals, settings.max_seq_length),
    }
    manifest.write_manifest(writer.folder, shards, job.recipe.vocab_file, run)
    return totals


def report(counts: dict[str, int], settings: pretraining.Settings) -> str:
    """One line with the shares that a user should look at."""
    share = buckets.shares(counts, settings.max_seq_length)
    return (
        f"{counts['documents']:,} documents, {counts['sentences']:,} "
        f"sentences, {counts['tokens']:,} tokens ({share['unknown']:.2%} "
        f"[UNK]); {counts['instances']:,} instances, {share['fill']:.1%} full, "
        f"{share['predicted']:.1%} predicted ({share['masked']:.0%} masked, "
        f"{share['random']:.0%} random), {share['random_next']:.1%} random next"
    )


def main(argv: list[str]) -> None:
    """Runs the script."""
    job = read_flags(argv)
    vocabulary.read_vocabulary(job.recipe.vocab_file)  # told before all work
    if job.runner:
        from data import runners

        runners.check_beam(job.runner)
    say(f"reading {len(job.input_files)} files")
    corpus = corpus_lib.scan(job.input_files)
    counts = write_records(job, corpus)
    print(report(counts, job.recipe.settings))
    for line in buckets.warnings(counts, job.recipe.settings):
        say(f"warning: {line}")
    print(
        f"wrote {counts['instances']:,} records to "
        f"{', '.join(job.output_files)}"
    )


if __name__ == "__main__":
    sys.exit(common_flags.run(main, sys.argv))
