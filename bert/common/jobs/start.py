"""Starts the runner of a job: processes of this machine, or Apache Beam."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from bert.common.jobs import runners
from bert.common.jobs.runners import Runners


class Run(Protocol):
    """Computes the results of items in order, on any runner."""

    def __call__(
        self,
        work: Callable[[Any, Any], Any],
        items: list,
        description: str,
        unit: str,
        size_of: Callable[[Any], float] = ...,
    ) -> list:
        """See `runners.map_shown`; results are JSON values."""


@contextlib.contextmanager
def started(
    job: Any, settings: Runners, options: list[str], num_processes: int
) -> Iterator[Run]:
    """Context manager that starts a runner.

    Args:
        job: dataclass. The job, with a `folder` that all workers can open.
        settings: Runners. The runner.
        options: list of str. Beam's command-line options.
        num_processes: int. Number of processes without Beam.

    Yields:
        callable. See `Run`.
    """
    if not settings.runner:
        with runners.open_pool(job, num_processes) as pool:

            def run_local(*arguments, **named):
                return runners.map_shown(pool, *arguments, **named)

            yield run_local
        return

    from bert.common.jobs import beam_runner  # a package that few install

    def run_beam(work, items, *_, **__):
        path = f"{job.folder}/results.json"
        runner = settings.runner
        return beam_runner.run(job, work, items, path, runner, options)

    yield run_beam
