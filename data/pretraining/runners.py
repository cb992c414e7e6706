"""Buckets on the processes of this machine, or on an engine through Beam."""

import functools
import json
from collections.abc import Callable

from common import processes, storage
from common.errors import UserError
from data.pretraining import partitions


def run_local(
    work: list[partitions.Bucket],
    recipe: partitions.Recipe,
    num_processes: int,
    on_copies: Callable[[int], None],
) -> list[dict[str, int]]:
    """Makes the parts of all buckets.

    Args:
        work: the buckets.
        recipe: how text becomes records.
        num_processes: at most so many; 1 works in this process.
        on_copies: called now and then with the copies of buckets that are
            made so far.

    Returns:
        counts of each bucket, in the order of `work`.

    Raises:
        UserError: as `Worker.make_part` does.
    """
    num_processes = min(num_processes, len(work))
    if num_processes == 1:
        return _run_here(work, recipe, on_copies)
    made = processes.SPAWN.Value("q", 0)
    return list(
        processes.map_in_order(
            functools.partial(_maker, recipe, made),
            work,
            num_processes,
            lambda: on_copies(made.value),
        )
    )


def check_beam(runner: str) -> None:
    """Refuses a runner that cannot be had, before there is work to lose.

    Raises:
        UserError: Beam is not installed, or has no such runner.
    """
    try:
        from apache_beam.runners import runner as runners
    except ImportError:
        raise UserError(
            "--runner needs Apache Beam",
            fix="pip install -r requirements-beam.txt",
        ) from None
    try:
        runners.create_runner(runner)
    except (ValueError, ImportError, AttributeError) as error:
        raise UserError(
            f"--runner={runner}: {error}", expected="a runner of Apache Beam"
        ) from None


def run_beam(
    work: list[partitions.Bucket],
    recipe: partitions.Recipe,
    runner: str,
    options: list[str],
) -> list[dict[str, int]]:
    """Makes the parts of all buckets on an engine that Apache Beam drives.

    Args:
        work: the buckets; workers must reach the paths.
        recipe: how text becomes records; workers must reach its vocabulary.
        runner: Beam's name of the engine, such as `DirectRunner`.
        options: Beam's own command line.

    Returns:
        counts of each bucket, in the order of `work`.
    """
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    class MakePart(beam.DoFn):
        """Makes parts with a worker whose vocabulary is read once."""

        def setup(self):
            self._worker = partitions.Worker(recipe)

        def process(self, bucket):
            counts = self._worker.make_part(bucket)
            with storage.open_file(_counts_path(bucket), "wb") as file:
                file.write(json.dumps(counts).encode())

    with beam.Pipeline(
        runner, options=PipelineOptions(options, save_main_session=False)
    ) as pipeline:
        (
            pipeline
            | "buckets" >> beam.Create(work)
            | "spread" >> beam.Reshuffle()
            | "records" >> beam.ParDo(MakePart())
        )
    counts = []
    for bucket in work:
        with storage.open_file(_counts_path(bucket), "rb") as file:
            counts.append(json.loads(file.read()))
    return counts


def _counts_path(bucket: partitions.Bucket) -> str:
    return f"{bucket.part_path}.json"


def _run_here(work, recipe, on_copies) -> list[dict[str, int]]:
    worker, made = partitions.Worker(recipe), 0
    counts = []

    def on_copy():
        nonlocal made
        made += 1
        on_copies(made)

    for bucket in work:
        counts.append(worker.make_part(bucket, on_copy))
    return counts


def _maker(
    recipe: partitions.Recipe, made
) -> Callable[[partitions.Bucket], dict[str, int]]:
    """Makes parts, and counts in `made` the copies of all processes."""

    def on_copy():
        with made.get_lock():
            made.value += 1

    return functools.partial(
        partitions.Worker(recipe).make_part, on_copy=on_copy
    )
