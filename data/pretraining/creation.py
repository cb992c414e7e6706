"""Creation of pre-training records: settings, shards, manifest."""

import dataclasses
import functools
import json
import os
import re
from collections import Counter

import numpy as np

from common import outputs as outputs_lib
from common import storage
from common.errors import UserError, printable
from common.flags import flag, group
from common.progress import say
from data.corpus import documents as corpus_lib
from data.corpus import groups
from data.pretraining import packing, partitions, runners
from data.pretraining.settings import InstanceSettings
from data.records import manifest
from data.records import writer as records
from data.text.settings import Text
from data.text.tokenizer import Tokenizer

_SCAN = "scan"  # note: documents and bytes of each file of the corpus


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
    max_document_mb: int = flag(
        corpus_lib.MAX_DOCUMENT_MB,
        "Maximum size of a document, in megabytes.",
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

    @property
    def processes(self) -> int:
        """Maximum number of processes."""
        return self.num_processes or os.cpu_count() or 1

    def check(self, beam_options: list[str]) -> None:
        """Checks the flags against each other, and the output folder.

        Args:
            beam_options: command line of Beam.

        Raises:
            UserError: the records could not be written, or flags contradict
                each other.
        """
        outputs = [storage.absolute(path) for path in self.output_files]
        folders = {os.path.dirname(path) for path in outputs}
        if len(folders) > 1 or len(set(outputs)) < len(outputs):
            raise UserError(
                f"--output_file={self.output_file}",
                expected="different files in one folder",
            )
        if any(map(outputs_lib.is_impossible, self.output_files)):
            raise UserError(
                f"--output_file={self.output_file!r} names no file",
                expected="a file name, such as folder/wiki.tfrecord",
            )
        self._check_manifest(folders.pop())
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

    def _check_manifest(self, folder: str) -> None:
        """Checks that the run may write its manifest."""
        names = [os.path.basename(x) for x in self.output_files]
        own = os.path.join(folder, manifest.name_for(names[0]))
        runs = manifest.read_runs(folder)  # raises if one is damaged
        listed = [
            (run["manifest"], name) for run in runs for name in run["shards"]
        ]
        for path, name in sorted(listed):
            named = os.path.join(folder, manifest.name_for(name))
            # A manifest that is named after a shard would describe it.
            if name in names and path == named != own:
                raise UserError(
                    f"lists {name}",
                    path=path,
                    expected="no manifest of this name",
                    fix="remove it, or choose another --output_file",
                )
            if (
                name not in names
                and own in (path, named)
                and storage.exists(os.path.join(folder, name))
            ):
                raise UserError(
                    f"lists {name}, which --output_file does not",
                    path=path,
                    expected="one set of shards of a name",
                    fix="remove the earlier shards, or choose another name",
                )
        if storage.exists(own) and manifest.read_manifest(own) is None:
            raise UserError(
                "not a manifest of records",
                path=own,
                expected="no file of this name, or an earlier manifest",
                fix="choose another --output_file",
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
    settings: Settings,
    tokenizer: Tokenizer,
    inputs: dict[str, list[str]],
    beam_options: list[str],
) -> dict[str, int]:
    """Writes the shards and the manifest; prints the shares of the groups.

    Args:
        settings: settings of the command line.
        tokenizer: of `settings.text`.
        inputs: from `list_inputs`.
        beam_options: command line of Beam.

    Returns:
        Counts of all records, with the names of `Worker.make_part`.

    Raises:
        UserError: the corpus cannot be used, or a file cannot be written.
    """
    identity = describe_inputs(settings, tokenizer, inputs)
    with records.ShardWriter(settings.output_files, identity) as writer:
        if settings.runner:
            from data.pretraining import beam_pipeline

            plan, counts, entries = beam_pipeline.run(
                settings.runner,
                beam_options,
                inputs,
                functools.partial(make_plan, settings, tokenizer),
                writer,
                settings.max_document_mb,
            )
        else:
            corpora = scan(inputs, settings.max_document_mb, writer)
            plan = make_plan(settings, tokenizer, corpora)
            counts, entries = runners.run_local(
                plan,
                corpora,
                writer,
                settings.processes,
                settings.max_document_mb,
            )
        by_group, totals = add_up(plan, counts)
        check_masked(totals)
        shards = writer.finish(entries)
        run = describe_run(settings, tokenizer, inputs, totals)
        if any(plan.groups):
            run["groups"] = {
                name: {**by_group[name], "copies": of_group.passes}
                for name, of_group in plan.groups.items()
            }
        records.write_manifest(writer.folder, shards, tokenizer, run)
    for name in filter(None, plan.groups):
        passes = plan.groups[name].passes
        print(report_group(name, by_group[name], totals, passes))
    return totals


def describe_inputs(
    settings: Settings, tokenizer: Tokenizer, inputs: dict[str, list[str]]
) -> str:
    """Describes all that the bytes of the records depend on, as JSON."""
    return json.dumps(
        {
            "format": 2,  # of the parts
            "inputs": {
                name: [
                    [storage.absolute(path), *storage.version(path)]
                    for path in files
                ]
                for name, files in inputs.items()
            },
            "instances": dataclasses.asdict(settings.instances),
            "casing": [tokenizer.do_lower_case, tokenizer.strip_accents],
            "vocabulary": tokenizer.sha256,
        }
    )


def scan(
    inputs: dict[str, list[str]],
    max_document_mb: int,
    writer: records.ShardWriter,
) -> dict[str, corpus_lib.Corpus]:
    """Scans the corpus, group by group, unless a killed run has done so.

    Raises:
        UserError: a file cannot be read.
    """
    note = writer.read_note(_SCAN) or {}
    if note.get("max_document_mb") == max_document_mb:
        return {
            name: corpus_lib.Corpus(files, *np.array(note["files"][name]).T)
            for name, files in inputs.items()
        }
    corpora = {}
    for name, files in inputs.items():
        of_group = f" of {name}" if name else ""
        say(f"reading {corpus_lib.number_of(files)}{of_group}")
        corpora[name] = corpus_lib.scan(files, max_document_mb)
    counted = {
        name: np.transpose([x.documents, x.sizes]).tolist()
        for name, x in corpora.items()
    }
    note = {"max_document_mb": max_document_mb, "files": counted}
    writer.write_note(_SCAN, note)
    return corpora


def make_plan(
    settings: Settings,
    tokenizer: Tokenizer,
    corpora: dict[str, corpus_lib.Corpus],
) -> partitions.Plan:
    """Plans the partitions of each group.

    Args:
        settings: settings of the command line.
        tokenizer: of `settings.text`.
        corpora: from `scan`.

    Raises:
        UserError: a group has too few documents.
    """
    instances = settings.instances
    passes = groups.passes(
        {name: corpus.num_bytes for name, corpus in corpora.items()},
        instances.dupe_factor,
        instances.smoothing,
    )
    planned, first = {}, 0
    for name, corpus in corpora.items():
        files = ",".join(corpus.files)
        partitions.check_documents(corpus.num_documents, files)
        count = corpus.num_partitions
        planned[name] = partitions.Group(first, count, passes[name])
        first += count
    recipe = partitions.Recipe(
        tokenizer,
        instances,
        len(settings.output_files),
        source=",".join(x for c in corpora.values() for x in c.files),
    )
    return partitions.Plan(recipe, planned)


def check_masked(counts: dict[str, int]) -> None:
    """Checks that some token is masked.

    Raises:
        UserError: none is, as each word has more tokens than can be masked.
    """
    if not counts["predictions"]:
        raise UserError(
            "no token is masked",
            expected="words of fewer tokens than the masks of a sequence",
            fix="pass --nodo_whole_word_mask, or --word_boundaries with "
            "segmented text",
        )


def add_up(
    plan: partitions.Plan, counts: list[dict[str, int]]
) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    """Adds the counts of partitions; returns those of each group, and all."""
    by_group, totals = {}, Counter()
    for name, of_group in plan.groups.items():
        by_group[name] = Counter()
        last = of_group.first + of_group.count
        for of_partition in counts[of_group.first : last]:
            by_group[name].update(of_partition)
        totals.update(by_group[name])
    return by_group, totals


def describe_run(
    settings: Settings,
    tokenizer: Tokenizer,
    inputs: dict[str, list[str]],
    totals: dict[str, int],
) -> dict:
    """Entry of the manifest: settings, and counts of the records."""
    instances = settings.instances
    run = {
        **dataclasses.asdict(instances),
        "do_lower_case": tokenizer.do_lower_case,
        "strip_accents": tokenizer.strips_accents,
        "vocab_size": len(tokenizer.vocab),
        "input_files": [
            printable(os.path.basename(path))
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
