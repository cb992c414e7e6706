"""Runs the stages of a creation of records on processes of this machine."""

import functools
from collections.abc import Callable

from common import extras, processes, storage
from common.errors import UserError
from common.progress import Progress, say
from data.corpus import documents as corpus_lib
from data.pretraining import partitions
from data.records import writer as records

_TEXTS = "texts"  # note: number of a partition -> sha256 of its text


def run_local(
    plan: partitions.Plan,
    corpora: dict[str, corpus_lib.Corpus],
    writer: records.ShardWriter,
    num_processes: int,
    max_document_mb: int,
) -> tuple[list[dict[str, int]], list[dict]]:
    """Makes all shards on this machine, up to their renaming.

    The partitions that an earlier run of the same command has finished are
    not made again.

    Args:
        plan: the partitions.
        corpora: the groups of the corpus.
        writer: has the paths of the parts and shards.
        num_processes: maximum number of processes; 1: no other process.
        max_document_mb: as for `documents.documents`.

    Returns:
        counts of each partition; the entry of each shard in the manifest.

    Raises:
        UserError: as for `Worker.make_part` and `Worker.write_shard`.
    """
    recipe = plan.recipe
    units = [
        partitions.Partition(
            number,
            f"{writer.part_path(number)}.txt",
            writer.part_path(number),
            passes,
        )
        for number, passes in enumerate(plan.passes)
    ]
    num_processes = min(num_processes, max(len(units), recipe.num_shards))
    with processes.Pool(
        functools.partial(partitions.Worker, recipe), num_processes
    ) as pool:
        parts = _find_parts(pool, units, writer.finished_parts())
        missing = [unit for unit in units if parts[unit.number] is None]
        if len(missing) < len(units):
            say(
                f"continuing: {len(units) - len(missing)} of {len(units)} "
                "partitions are finished"
            )
        _write_texts(plan, corpora, missing, max_document_mb, writer)
        progress = Progress("records", len(missing), "partitions")
        made = _map(pool, partitions.Worker.make_part, missing, progress)
        for unit, part in zip(missing, made):
            parts[unit.number] = part
        sections = [
            (
                partitions.section_name(unit.number, section),
                partitions.section_path(unit, section),
            )
            for unit, part in zip(units, parts, strict=True)
            for section in range(len(part.sections))
        ]
        shards = [
            partitions.Shard(number, writer.shard_path(number), sections)
            for number in range(recipe.num_shards)
        ]
        progress = Progress("shards", len(shards), "shards")
        entries = _map(pool, partitions.Worker.write_shard, shards, progress)
    return [part.counts for part in parts], entries


def check_beam(runner: str) -> None:
    """Checks that a runner can be used.

    Raises:
        UserError: Beam is not installed, or has no such runner.
    """
    try:
        from apache_beam.runners import runner as runners
    except ImportError:
        raise extras.error("beam", "apache_beam", what="--runner") from None
    try:
        runners.create_runner(runner)
    except (ValueError, ImportError, AttributeError) as error:
        raise UserError(
            f"--runner={runner}: {error}", expected="a runner of Apache Beam"
        ) from None


def _find_parts(
    pool: processes.Pool, units: list[partitions.Partition], there: set[int]
) -> list[partitions.Part | None]:
    """Finds the parts of an earlier run; one that has changed is missing."""
    candidates = [unit for unit in units if unit.number in there]
    parts: list[partitions.Part | None] = [None] * len(units)
    progress = Progress("comparing", len(candidates), "partitions")
    found = _map(pool, partitions.Worker.find_part, candidates, progress)
    for unit, part in zip(candidates, found):
        parts[unit.number] = part
    return parts


def _write_texts(
    plan: partitions.Plan,
    corpora: dict[str, corpus_lib.Corpus],
    missing: list[partitions.Partition],
    max_document_mb: int,
    writer: records.ShardWriter,
) -> None:
    """Writes the text of partitions, unless a killed run has left it."""
    digests = writer.read_note(_TEXTS) or {}
    paths = {
        unit.number: unit.text_path
        for unit in missing
        if not records.has_digest(unit.text_path, digests.get(str(unit.number)))
    }
    if not paths:
        return
    for path in paths.values():
        if storage.exists(path):
            storage.remove(path)
    for name, group in plan.groups.items():
        found = corpus_lib.write_partitions(
            corpora[name],
            plan.recipe.settings.random_seed,
            {
                number: paths[group.first + number]
                for number in range(group.count)
                if group.first + number in paths
            },
            max_document_mb,
        )
        digests |= {str(group.first + x): y for x, y in found.items()}
    writer.write_note(_TEXTS, digests)


def _map(
    pool: processes.Pool, work: Callable, items: list, progress: Progress
) -> list:
    """Results of the pool, in the order of the items."""
    found: list = []
    for result in pool.map(work, items, lambda: progress.update(len(found))):
        found.append(result)
        progress.update(len(found))
    return found
