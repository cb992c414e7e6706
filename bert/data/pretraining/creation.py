"""Creates pre-training records: settings, shards, manifest."""

import dataclasses
import json
import os
import re
from collections import Counter

from bert.common import atomic, flags, processes, storage
from bert.common import outputs as outputs_lib
from bert.common.errors import UserError, printable
from bert.common.flags import changed, flag
from bert.common.jobs import any_runner, scratch
from bert.common.jobs.runners import Runners
from bert.common.rules import needs
from bert.data.corpus import documents as corpus_lib
from bert.data.pretraining import packing, record_fractions, record_job, stages
from bert.data.pretraining.settings import InstanceSettings
from bert.data.records import manifest, writer
from bert.data.text import vocabulary_checks
from bert.data.text.casing import NewCasing
from bert.data.text.tokenizer import Tokenizer

_COMPRESSION = 4  # size of a text by the size of its .gz, at most


@dataclasses.dataclass(frozen=True)
class Settings(Runners, NewCasing, InstanceSettings):
    """Settings of create_pretraining_data.py."""

    RULES = [
        needs("word_boundaries", "do_whole_word_mask"),
    ]

    input_file: str = flag(
        None,
        "Corpus: files and globs, separated by commas; or name=path for each "
        "language.",
        required=True,
        path=True,
    )
    output_file: str = flag(
        None,
        "TFRecord files to write, separated by commas.",
        required=True,
        path=True,
    )
    vocab_file: str = flag(
        None, "Vocabulary, one token per line.", required=True, path=True
    )
    num_processes: int | None = changed(
        Runners,
        "num_processes",
        help="Number of processes that make records; default: one per core.",
    )
    max_document_mb: int = flag(
        corpus_lib.MAX_DOCUMENT_MB,
        "Maximum size of a document, in megabytes.",
        at_least=1,
    )

    @property
    def output_files(self) -> list[str]:
        """Paths of the shards."""
        return self.output_file.split(",")

    def check_outputs(self) -> None:
        """Checks that the run can write its records without harming others.

        Raises:
            UserError: The outputs are impossible, or another run's manifest
                would become wrong.
        """
        # The manifest and the scratch folder are in the folder of the shards.
        outputs = [storage.absolute(path) for path in self.output_files]
        folders = {os.path.dirname(path) for path in outputs}
        if len(folders) > 1 or len(set(outputs)) < len(outputs):
            raise UserError(
                f"--output_file={self.output_file}",
                expected="different files in one folder",
            )
        if any(map(outputs_lib.is_impossible, self.output_files)):
            raise UserError(
                f"--output_file={self.output_file!r} is not a file name",
                expected="a file name, such as folder/wiki.tfrecord",
            )
        for path in self.output_files:
            outputs_lib.check_writable(path)
        self._check_manifest(folders.pop())

    def _check_manifest(self, folder: str) -> None:
        """Checks that manifests match their shards after the run."""
        names = [os.path.basename(x) for x in self.output_files]
        manifest_path = os.path.join(folder, manifest.name_for(names[0]))
        for earlier in manifest.read_folder(folder):
            for name in earlier.shards:
                # The earlier manifest would list a shard that is replaced.
                if name in names and earlier.path != manifest_path:
                    raise UserError(
                        f"lists {name}",
                        path=earlier.path,
                        expected="one manifest for each shard",
                        fix="remove it, or choose another --output_file",
                    )

                # A shard that is kept would no longer be in a manifest.
                if (
                    name not in names
                    and earlier.path == manifest_path
                    and storage.exists(os.path.join(folder, name))
                ):
                    raise UserError(
                        f"lists {name}, which --output_file does not",
                        path=manifest_path,
                        expected="one set of shards with this name",
                        fix="remove the earlier shards, or choose another name",
                    )


def list_inputs(patterns: str) -> dict[str, list[str]]:
    """Lists the files of each group of the corpus.

    Args:
        patterns: str. Value of --input_file.

    Returns:
        dict. Name of a group -> its files. The name is "" for a corpus
        without groups.

    Raises:
        UserError: A pattern matches no file, or some groups have no name.
    """
    named: dict[str, list[str]] = {}
    for pattern in patterns.split(","):
        name, path = "", pattern
        match = re.fullmatch(r"([\w.-]+)=(.+)", pattern)
        # A file name may contain `=`.
        if match and not (storage.exists(pattern) or storage.glob(pattern)):
            name, path = match.groups()
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


def open_job(settings: Settings) -> record_job.Job:
    """Lists the inputs and reads the vocabulary.

    Args:
        settings: Settings. Settings of the script.

    Raises:
        UserError: A file is missing, of the wrong kind, or also an output.
    """
    inputs = list_inputs(settings.input_file)
    files = [path for paths in inputs.values() for path in paths]
    corpus_lib.check_names(files)
    outputs_lib.check_no_input(
        settings.output_files, [*files, settings.vocab_file]
    )

    tokenizer = Tokenizer.of(settings.vocab_file, settings)
    vocabulary_checks.warn(tokenizer)

    # Every language is sampled, as some languages may need their accents.
    lines = [
        x for group in inputs.values() for x in corpus_lib.sample_lines(group)
    ]
    vocabulary_checks.warn_of_accents(
        tokenizer.strips_accents, tokenizer.path, lines
    )

    # Version of the unfinished files, and everything that they depend on.
    identity = [
        5,
        {**flags.as_dict(settings), "num_processes": None, "runner": None},
        tokenizer.sha256,
        [[storage.absolute(path), *storage.version(path)] for path in files],
    ]
    return record_job.Job(
        scratch.folder_of(
            os.path.dirname(storage.absolute(settings.output_files[0])),
            writer.run_names(settings.output_files),
            json.dumps(identity),
            bool(settings.runner),
        ),
        inputs,
        settings.output_files,
        tokenizer,
        InstanceSettings(**flags.as_dict(settings, of=InstanceSettings)),
        settings.max_document_mb,
    )


def create(
    job: record_job.Job, settings: Settings, beam_options: list[str]
) -> dict[str, int]:
    """Writes the shards and the manifest; prints one line for each group.

    Args:
        job: Job. Result of `open_job`.
        settings: Settings. Settings of the script.
        beam_options: list of str. Beam's command-line options.

    Returns:
        dict. Counts of all records, with the names of `Job.make_sections`.

    Raises:
        UserError: The corpus cannot be used, or a file cannot be written.
    """
    folder = os.path.dirname(storage.absolute(job.outputs[0]))
    count = 1 if settings.runner else _num_processes(job, settings)
    names = writer.run_names(job.outputs)
    # Beam raises errors of its own if its workers end.
    kept_after = (BaseException,) if settings.runner else scratch.STOPPED
    with scratch.claim(folder, names, job.folder, kept_after):
        with any_runner.started(
            job, settings, beam_options, count
        ) as run_stage:
            result = stages.make_shards(job, run_stage)
        totals: Counter[str] = Counter()
        by_group = {name: Counter() for name in job.inputs}
        for partition, sections in zip(
            result.partitions, result.counts, strict=True
        ):
            for counts in sections:
                by_group[partition.group].update(counts)
                totals.update(counts)
        check_masked(totals)

        run = describe_run(job, totals)
        passes = {x.group: x.passes for x in result.partitions}
        if any(passes):  # without groups, the only name is ""
            run["groups"] = {
                name: {**by_group[name], "copies": passes[name]}
                for name in passes
            }

        # The manifest is written last, when all its shards are complete.
        for number, path in enumerate(job.outputs):
            storage.replace(job.shard_path(number), path)
        if not storage.is_remote(folder):
            atomic.sync(folder)
        names = map(os.path.basename, job.outputs)
        entries = dict(zip(names, result.entries, strict=True))
        writer.write_manifest(folder, entries, job.tokenizer, run)

    for name in filter(None, passes):
        print(report_group(name, by_group[name], totals, passes[name]))
    return totals


def _num_processes(job: record_job.Job, settings: Settings) -> int:
    """Returns the number of processes; a small corpus has work for few."""
    size = sum(
        storage.size(path) * (_COMPRESSION if path.endswith(".gz") else 1)
        for path in job.files
    )
    work = max(corpus_lib.most_partitions(size), len(job.outputs))
    return min(settings.num_processes or processes.num_cores(), work)


def check_masked(counts: dict[str, int]) -> None:
    """Checks that at least one token is masked.

    Raises:
        UserError: No token is masked, because each word has more tokens than
            may be masked in a sequence.
    """
    if not counts["predictions"]:
        raise UserError(
            "no token is masked",
            expected="words of fewer tokens than the masks of a sequence",
            fix="pass --nodo_whole_word_mask, or --word_boundaries with "
            "segmented text",
        )


def describe_run(job: record_job.Job, totals: dict[str, int]) -> dict:
    """Returns the entries of the manifest: settings and counts."""
    length = job.settings.max_seq_length
    run = {
        **dataclasses.asdict(job.settings),
        "do_lower_case": job.tokenizer.do_lower_case,
        "strip_accents": job.tokenizer.strips_accents,
        "vocab_size": len(job.tokenizer.vocab),
        "input_files": [printable(os.path.basename(x)) for x in job.files],
        "statistics": totals,
        "shares": record_fractions.fractions(totals, length),
    }
    if job.settings.pack_sequences:
        most = packing.max_sequences_per_row(length)
        run["max_sequences_per_row"] = most
    return run


def report_group(
    name: str, counts: dict[str, int], totals: dict[str, int], passes: float
) -> str:
    """Returns one line with a group's fractions of corpus and records."""
    before = counts["tokens"] / totals["tokens"]
    after = counts["instances"] / totals["instances"]
    return (
        f"{name}: {before:.1%} of the tokens, {passes:.2f} passes, "
        f"{after:.1%} of the instances"
    )


def report(counts: dict[str, int], settings: InstanceSettings) -> str:
    """Returns one line with the counts and fractions for the user to check."""
    found = record_fractions.fractions(counts, settings.max_seq_length)
    rows = f"{counts['instances']:,} instances"
    if settings.pack_sequences:
        rows += f" in {counts['records']:,} rows"
    return (
        f"{counts['documents']:,} documents, {counts['sentences']:,} "
        f"sentences, {counts['tokens']:,} tokens ({found['unknown']:.2%} "
        f"[UNK]); {rows}, {found['fill']:.1%} full, "
        f"{found['predicted']:.1%} predicted ({found['masked']:.0%} masked, "
        f"{found['random']:.0%} random), {found['random_next']:.1%} random next"
    )
