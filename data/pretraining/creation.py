"""Creation of pre-training records: settings, shards, manifest."""

import dataclasses
import math
import os
import re

from common import storage
from common.errors import UserError
from common.flags import flag, group
from common.progress import Progress, say
from data.corpus import documents as corpus_lib
from data.corpus import groups
from data.pretraining import packing, partitions, runners
from data.pretraining.settings import InstanceSettings
from data.records import manifest
from data.text import tokenization, vocabulary
from data.text.settings import Text


@dataclasses.dataclass(frozen=True)
class Settings:
    """Creation of pre-training records."""

    input_file: str | None = flag(
        None,
        "Corpus: files and globs, separated by commas; or name=path of each "
        "language.",
        required=True,
        path=True,
    )
    output_file: str | None = flag(
        None,
        "TFRecord files to write, separated by commas.",
        required=True,
        path=True,
    )
    text: Text = group(Text)
    instances: InstanceSettings = group(InstanceSettings)
    num_processes: int | None = flag(
        None,
        "Number of processes that make records; default: one per core.",
        at_least=1,
    )
    runner: str | None = flag(
        None,
        "Make records with Apache Beam on this runner, such as DirectRunner "
        "or DataflowRunner; Beam's own options follow --.",
    )

    @property
    def output_files(self) -> list[str]:
        """Paths of the shards."""
        return self.output_file.split(",")

    def check(self, beam_options: list[str]) -> None:
        """Checks the flags against each other, and the output folder.

        Args:
            beam_options: command line of Beam.

        Raises:
            UserError: the records could not be written, or flags contradict
                each other.
        """
        outputs = self.output_files
        folders = {os.path.dirname(storage.absolute(path)) for path in outputs}
        if len(folders) > 1 or len(set(outputs)) < len(outputs):
            raise UserError(
                f"--output_file={self.output_file}",
                expected="different files in one folder",
            )
        if any(not path or storage.is_folder(path) for path in outputs):
            raise UserError(
                f"--output_file={self.output_file!r} names a folder",
                expected="a file name, such as folder/wiki.tfrecord",
            )
        manifest.read_runs(folders.pop())  # raises if one is damaged
        if beam_options and not self.runner:
            raise UserError(
                f"{beam_options[0]!r} after -- is for Beam",
                fix="pass --runner too",
            )
        instances = self.instances
        if instances.word_boundaries and not instances.do_whole_word_mask:
            raise UserError(
                "--word_boundaries changes nothing",
                fix="pass --do_whole_word_mask too",
            )


def split_options(argv: list[str]) -> tuple[list[str], list[str]]:
    """Splits the command line into our arguments and Beam's, after `--`."""
    if "--" not in argv:
        return argv, []
    end = argv.index("--")
    return argv[:end], argv[end + 1 :]


def list_inputs(patterns: str) -> dict[str, list[str]]:
    """Lists the files of each group of the corpus.

    Args:
        patterns: value of --input_file.

    Returns:
        name -> files; a single group without names has the name "".

    Raises:
        UserError: a pattern matches no file, or some groups have no name.
    """
    named: dict[str, list[str]] = {}
    for pattern in patterns.split(","):
        name, path = "", pattern
        found = re.fullmatch(r"([\w.-]+)=(.+)", pattern)
        # The name of a file may contain `=`.
        if found and not (storage.exists(pattern) or storage.glob(pattern)):
            name, path = found.groups()
        named.setdefault(name, []).append(path)
    if "" in named and len(named) > 1:
        raise UserError(
            f"--input_file: {named[''][0]!r} has no name, but others do",
            expected="name=path for each",
        )
    return {
        name: storage.list_files(",".join(paths), "input_file")
        for name, paths in named.items()
    }


def create(
    settings: Settings, inputs: dict[str, list[str]], beam_options: list[str]
) -> dict[str, int]:
    """Writes the shards and the manifest; prints the shares of the groups.

    Args:
        settings: settings of the command line.
        inputs: from `list_inputs`.
        beam_options: command line of Beam.

    Returns:
        Counts of all records, with the names of `Worker.make_part`.

    Raises:
        UserError: the corpus cannot be used, or a file cannot be written.
    """
    from data.records import writer as records

    corpora = scan(inputs)
    seed = settings.instances.random_seed
    with records.ShardWriter(settings.output_files) as writer:
        work = partition(corpora, settings.instances, writer)
        parts = make_parts(settings, inputs, work, beam_options)
        shards = writer.finish([part["records"] for part in parts], seed)
    remaining = iter(parts)
    counts: dict[str, dict[str, int]] = {name: {} for name in work}
    totals: dict[str, int] = {}
    for name, of_group in work.items():
        for _ in of_group:
            partitions.add_counts(counts[name], next(remaining))
        partitions.add_counts(totals, counts[name])
    run = describe_run(settings, inputs, totals)
    if any(counts):
        run["groups"] = {
            name: {**counts[name], "copies": work[name][0].passes}
            for name in counts
        }
    manifest.write_manifest(
        writer.folder, shards, settings.text.vocab_file, run
    )
    for name in filter(None, counts):
        print(report_group(name, counts[name], totals, work[name][0].passes))
    return totals


def scan(inputs: dict[str, list[str]]) -> dict[str, corpus_lib.Corpus]:
    """Scans the corpus, group by group.

    Raises:
        UserError: a file cannot be read, or a group has too few documents.
    """
    corpora = {}
    for name, files in inputs.items():
        say(f"reading {len(files)} files{f' of {name}' if name else ''}")
        corpora[name] = corpus_lib.scan(files)
        partitions.check_documents(
            len(corpora[name].document_bytes), ",".join(files)
        )
    return corpora


def partition(
    corpora: dict[str, corpus_lib.Corpus], settings: InstanceSettings, writer
) -> dict[str, list[partitions.Partition]]:
    """Partitions the documents of each group.

    Args:
        corpora: from `scan`.
        settings: settings of the instances.
        writer: a `ShardWriter`, for whose folder the parts are.

    Returns:
        The partitions of each group, numbered from 0 over all groups.
    """
    passes = groups.passes(
        {
            name: int(corpus.document_bytes.sum())
            for name, corpus in corpora.items()
        },
        settings.dupe_factor,
        settings.smoothing,
    )
    work: dict[str, list[partitions.Partition]] = {}
    first = 0
    for name, corpus in corpora.items():
        paths = corpus_lib.write_partitions(
            corpus, settings.random_seed, writer.scratch, first
        )
        work[name] = [
            partitions.Partition(
                number, path, writer.part_path(number), passes[name]
            )
            for number, path in enumerate(paths, first)
        ]
        first += len(paths)
    return work


def make_parts(
    settings: Settings,
    inputs: dict[str, list[str]],
    work: dict[str, list[partitions.Partition]],
    beam_options: list[str],
) -> list[dict[str, int]]:
    """Makes the records of every partition, locally or with Apache Beam.

    Returns:
        Counts of each partition, in the order of `work`.
    """
    recipe = partitions.Recipe(
        settings.text,
        settings.instances,
        source=",".join(path for files in inputs.values() for path in files),
    )
    units = [unit for of_group in work.values() for unit in of_group]
    if settings.runner:
        return runners.run_beam(units, recipe, settings.runner, beam_options)
    passes = sum(math.ceil(unit.passes) for unit in units)
    progress = Progress("records", passes, "passes")
    num_processes = settings.num_processes or os.cpu_count() or 1
    return runners.run_local(units, recipe, num_processes, progress.update)


def describe_run(
    settings: Settings, inputs: dict[str, list[str]], totals: dict[str, int]
) -> dict:
    """Entry of the manifest: settings, and counts of the records."""
    text, instances = settings.text, settings.instances
    run = {
        **dataclasses.asdict(instances),
        "do_lower_case": text.do_lower_case,
        "strip_accents": tokenization.strips_accents(
            text.do_lower_case, text.strip_accents
        ),
        "vocab_size": len(vocabulary.read_vocabulary(text.vocab_file)),
        "input_files": [
            os.path.basename(path)
            for files in inputs.values()
            for path in files
        ],
        "statistics": totals,
        "shares": partitions.shares(totals, instances.max_seq_length),
    }
    if instances.pack_sequences:
        run["max_sequences_per_row"] = packing.max_sequences_per_row(
            instances.max_seq_length
        )
    return run


def report_group(
    name: str, counts: dict[str, int], totals: dict[str, int], passes: float
) -> str:
    """One line with the shares of a group in the corpus and the records."""
    before = counts["tokens"] / totals["tokens"]
    after = counts["instances"] / totals["instances"]
    return (
        f"{name}: {before:.1%} of the tokens, {passes:.2f} passes, "
        f"{after:.1%} of the instances"
    )


def report(counts: dict[str, int], settings: InstanceSettings) -> str:
    """One line with the counts and shares that a user should check."""
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
