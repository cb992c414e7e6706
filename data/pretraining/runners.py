"""Runs partitions in processes of this machine, or with Apache Beam."""

import functools
import json
from collections.abc import Callable

from common import processes, storage
from common.errors import UserError
from data.pretraining import partitions

_worker: partitions.Worker  # of a process in the pool
_copies = None  # number of passes that all processes have made


def run_local(
    work: list[partitions.Partition],
    recipe: partitions.Recipe,
    num_processes: int,
    on_passes: Callable[[int], None],
) -> list[dict[str, int]]:
    """Makes the records of all partitions on this machine.

    Args:
        work: the partitions.
        recipe: settings of all partitions.
        num_processes: maximum number of processes; 1: no other process.
        on_passes: called about every second with the number of passes that
            are finished.

    Returns:
        Counts of each partition, in the order of `work`.

    Raises:
        UserError: as `Worker.make_part`.
    """
    num_processes = min(num_processes, len(work))
    if num_processes == 1:
        return _run_here(work, recipe, on_passes)
    finished = processes.SPAWN.Value("q", 0)
    return list(
        processes.map_in_order(
            functools.partial(_maker, recipe, finished),
            work,
            num_processes,
            lambda: on_passes(finished.value),
        )
    )


def check_beam(runner: str) -> None:
    """Checks that a runner can be used.

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
    work: list[partitions.Partition],
    recipe: partitions.Recipe,
    runner: str,
    options: list[str],
) -> list[dict[str, int]]:
    """Makes the records of all partitions with Apache Beam.

    Args:
        work: the partitions; workers must be able to open their paths.
        recipe: settings of all partitions; workers must be able to open the
            vocabulary.
        runner: Beam's name of the runner, such as `DirectRunner`.
        options: command line of Beam.

    Returns:
        Counts of each partition, in the order of `work`.
    """
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    class MakePart(beam.DoFn):
        """Makes records with a worker that reads its vocabulary once."""

        def setup(self):
            self._worker = partitions.Worker(recipe)

        def process(self, partition):
            counts = self._worker.make_part(partition)
            with storage.open_file(_counts_path(partition), "wb") as file:
                file.write(json.dumps(counts).encode())

    with beam.Pipeline(
        runner, options=PipelineOptions(options, save_main_session=False)
    ) as pipeline:
        (
            pipeline
            | "partitions" >> beam.Create(work)
            | "spread" >> beam.Reshuffle()
            | "records" >> beam.ParDo(MakePart())
        )
    counts = []
    for partition in work:
        with storage.open_file(_counts_path(partition), "rb") as file:
            counts.append(json.loads(file.read()))
    return counts


def _counts_path(partition: partitions.Partition) -> str:
    return f"{partition.part_path}.json"


def _run_here(work, recipe, on_passes) -> list[dict[str, int]]:
    worker, finished = partitions.Worker(recipe), 0
    counts = []

    def on_pass():
        nonlocal finished
        finished += 1
        on_passes(finished)

    for partition in work:
        counts.append(worker.make_part(partition, on_pass))
    return counts


def _maker(
    recipe: partitions.Recipe, finished
) -> Callable[[partitions.Partition], dict[str, int]]:
    """Makes parts, and adds the passes of all processes to `finished`."""

    def on_pass():
        with finished.get_lock():
            finished.value += 1

    return functools.partial(
        partitions.Worker(recipe).make_part, on_pass=on_pass
    )
