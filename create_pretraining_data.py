r"""Corpus + vocabulary -> TFRecord shards of masked sentence pairs.

The corpus has one sentence a line and a blank line between documents; files
that end in .gz are decompressed. Example:

    python create_pretraining_data.py --input_file='wiki/*.txt.gz' \
        --output_file=records/wiki.tfrecord --vocab_file=vocab.txt

Languages, or other groups, may have names, so that small ones count for more:

    --input_file='en=wiki/en/*.gz,sw=wiki/sw/*.gz'
"""

import dataclasses
import math
import os
import re
import sys

from absl import flags

from common import storage
from common.errors import UserError
from common.progress import Progress, say
from data.corpus import documents as corpus_lib
from data.corpus import groups
from data.pretraining import packing, partitions
from data.pretraining.settings import Settings
from data.records import manifest
from data.text import tokenization, vocabulary
from tasks import common_flags, text_flags


def define_flags(values: flags.FlagValues) -> None:
    """Defines this script's flags."""
    for name, meaning in (
        (
            "input_file",
            "Corpus: files and globs, separated by commas; or name=path of "
            "each language.",
        ),
        ("output_file", "TFRecord files to write, separated by commas."),
    ):
        flags.DEFINE_string(
            name, None, meaning, flag_values=values, required=True
        )
    text_flags.define_text(values)
    common_flags.define_lengths(values)
    common_flags.define_seed(values)
    for name, meaning in (
        ("do_whole_word_mask", "Mask all pieces of a word or none."),
        (
            "word_boundaries",
            "The corpus is cut into words by white space, Chinese too; what "
            "--do_whole_word_mask masks are these.",
        ),
        ("pack_sequences", "Several instances in a row, less padding."),
    ):
        flags.DEFINE_bool(name, False, meaning, flag_values=values)
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
    for name, default, meaning in (
        (
            "dupe_factor",
            10,
            "How often the corpus is gone through, with other masks.",
        ),
        ("max_ngram", 1, "Mask spans of at most so many words or pieces."),
    ):
        flags.DEFINE_integer(
            name, default, meaning, flag_values=values, lower_bound=1
        )
    for name, default, meaning in (
        ("masked_lm_prob", 0.15, "Share of the pieces that is masked."),
        ("short_seq_prob", 0.1, "Share of documents cut into short rows."),
        (
            "smoothing",
            0.7,
            "Of name=path inputs: each has a share in the records like the "
            "power of its share in the corpus.",
        ),
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
    """What the command line asks for.

    Attributes:
        inputs: files of each group of the corpus; one group without a name.
        output_files: shards.
        recipe: how text becomes records.
        num_processes: at most so many.
        runner: Beam's name of an engine.
        options: Beam's own command line.
    """

    inputs: dict[str, list[str]]
    output_files: list[str]
    recipe: partitions.Recipe
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
    inputs = read_inputs(values.input_file)
    files = [path for group in inputs.values() for path in group]
    return Job(
        inputs=inputs,
        output_files=outputs,
        recipe=partitions.Recipe(
            values.vocab_file,
            values.do_lower_case,
            values.strip_accents,
            read_settings(values),
            source=",".join(files),
        ),
        num_processes=values.num_processes or os.cpu_count() or 1,
        runner=values.runner,
        options=options,
    )


def read_settings(values: flags.FlagValues) -> Settings:
    """Reads how instances are made."""
    if values.word_boundaries and not values.do_whole_word_mask:
        raise UserError(
            "--word_boundaries changes nothing",
            fix="pass --do_whole_word_mask too",
        )
    return Settings(
        **{
            field.name: values[field.name].value
            for field in dataclasses.fields(Settings)
        }
    )


def read_inputs(patterns: str) -> dict[str, list[str]]:
    """Lists the files of each group of the corpus."""
    named: dict[str, list[str]] = {}
    for pattern in patterns.split(","):
        name, path = "", pattern
        found = re.fullmatch(r"([\w.-]+)=(.+)", pattern)
        # The name of a file may have such a sign in it.
        if found and not (storage.exists(pattern) or storage.glob(pattern)):
            name, path = found.groups()
        named.setdefault(name, []).append(path)
    if "" in named and len(named) > 1:
        raise UserError(
            f"--input_file: {named[''][0]!r} has no name, others have",
            expected="name=path for each",
        )
    return {
        name: common_flags.list_files(",".join(paths), "input_file")
        for name, paths in named.items()
    }


def scan(job: Job) -> dict[str, corpus_lib.Corpus]:
    """Reads the corpus once, group by group."""
    corpora = {}
    for name, files in job.inputs.items():
        say(f"reading {len(files)} files{f' of {name}' if name else ''}")
        corpora[name] = corpus_lib.scan(files)
        partitions.check_documents(
            len(corpora[name].document_bytes), ",".join(files)
        )
    return corpora


def deal(
    corpora: dict[str, corpus_lib.Corpus], settings: Settings, writer
) -> dict[str, list[partitions.Bucket]]:
    """Deals the documents of each group into buckets."""
    copies = groups.copies(
        {
            name: int(corpus.document_bytes.sum())
            for name, corpus in corpora.items()
        },
        settings.dupe_factor,
        settings.smoothing,
    )
    work: dict[str, list[partitions.Bucket]] = {}
    first = 0
    for name, corpus in corpora.items():
        paths = corpus_lib.deal(
            corpus, settings.random_seed, writer.scratch, first
        )
        work[name] = [
            partitions.Bucket(
                number, path, writer.part_path(number), copies[name]
            )
            for number, path in enumerate(paths, first)
        ]
        first += len(paths)
    return work


def make_parts(work: list[partitions.Bucket], job: Job) -> list[dict[str, int]]:
    """Makes the records of every bucket, here or on an engine."""
    from data.pretraining import runners

    if job.runner:
        return runners.run_beam(work, job.recipe, job.runner, job.options)
    passes = sum(math.ceil(bucket.copies) for bucket in work)
    progress = Progress("records", passes, "passes")
    return runners.run_local(
        work, job.recipe, job.num_processes, progress.update
    )


def write_records(
    job: Job, corpora: dict[str, corpus_lib.Corpus]
) -> dict[str, int]:
    """Writes shards and manifest; returns what was counted."""
    from data.records import writer as records

    settings = job.recipe.settings
    with records.ShardWriter(job.output_files) as writer:
        work = deal(corpora, settings, writer)
        parts = make_parts([b for group in work.values() for b in group], job)
        shards = writer.finish(
            [part["records"] for part in parts], settings.random_seed
        )
    unread = iter(parts)
    counts: dict[str, dict[str, int]] = {name: {} for name in work}
    for name, group in work.items():
        for _ in group:
            partitions.add_counts(counts[name], next(unread))
    totals: dict[str, int] = {}
    for group in counts.values():
        partitions.add_counts(totals, group)
    run = describe_run(job, totals)
    if any(counts):
        run["groups"] = {
            name: {**counts[name], "copies": work[name][0].copies}
            for name in counts
        }
    manifest.write_manifest(writer.folder, shards, job.recipe.vocab_file, run)
    for name in filter(None, counts):
        print(tell_group(name, counts[name], totals, work[name][0].copies))
    return totals


def describe_run(job: Job, totals: dict[str, int]) -> dict:
    """What the manifest keeps of the settings and the records."""
    settings = job.recipe.settings
    run = {
        **dataclasses.asdict(settings),
        "do_lower_case": job.recipe.do_lower_case,
        "strip_accents": tokenization.strips_accents(
            job.recipe.do_lower_case, job.recipe.strip_accents
        ),
        "vocab_size": len(vocabulary.read_vocabulary(job.recipe.vocab_file)),
        "input_files": [
            os.path.basename(path)
            for group in job.inputs.values()
            for path in group
        ],
        "statistics": totals,
        "shares": partitions.shares(totals, settings.max_seq_length),
    }
    if settings.pack_sequences:
        run["max_sequences_per_row"] = packing.max_sequences_per_row(
            settings.max_seq_length
        )
    return run


def tell_group(
    name: str, counts: dict[str, int], totals: dict[str, int], copies: float
) -> str:
    """One line with the share of a group before and after."""
    before = counts["tokens"] / totals["tokens"]
    after = counts["instances"] / totals["instances"]
    return (
        f"{name}: {before:.1%} of the tokens, gone through {copies:.2f} times, "
        f"{after:.1%} of the instances"
    )


def report(counts: dict[str, int], settings: Settings) -> str:
    """One line with the shares that a user should look at."""
    share = partitions.shares(counts, settings.max_seq_length)
    rows = f"{counts['instances']:,} instances"
    if settings.pack_sequences:
        rows += f" in {counts['records']:,} rows"
    return (
        f"{counts['documents']:,} documents, {counts['sentences']:,} "
        f"sentences, {counts['tokens']:,} tokens ({share['unknown']:.2%} "
        f"[UNK]); {rows}, {share['fill']:.1%} full, "
        f"{share['predicted']:.1%} predicted ({share['masked']:.0%} masked, "
        f"{share['random']:.0%} random), {share['random_next']:.1%} random next"
    )


def main(argv: list[str]) -> None:
    """Runs the script."""
    job = read_flags(argv)
    vocabulary.read_vocabulary(job.recipe.vocab_file)  # told before all work
    if job.runner:
        from data.pretraining import runners

        runners.check_beam(job.runner)
    counts = write_records(job, scan(job))
    print(report(counts, job.recipe.settings))
    for line in partitions.warnings(counts, job.recipe.settings):
        say(f"warning: {line}")
    print(
        f"wrote {counts['records']:,} records to {', '.join(job.output_files)}"
    )


if __name__ == "__main__":
    sys.exit(common_flags.run(main, sys.argv))
