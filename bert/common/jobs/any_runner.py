"""Starts the runner of a job: processes of this machine, or Apache Beam."""

import contextlib
import logging
import uuid
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from bert.common import errors
from bert.common.errors import UserError
from bert.common.jobs import runners
from bert.common.jobs.runners import Runners
from bert.common.processes import Pool


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


def check(settings: Runners, beam_options: list[str]) -> None:
    """Checks that --runner can be used, before any work.

    Args:
        settings: Runners. The runner.
        beam_options: list of str. Beam's command-line options.

    Raises:
        UserError: Options are given without --runner, Beam is not installed,
            the runner does not exist or lacks options, or its job server
            cannot be downloaded.
    """
    if not settings.runner:
        if beam_options:
            raise UserError(
                f"{beam_options[0]!r} after -- is for Beam",
                fix="pass --runner too",
            )
        return

    # Beam logs which of its own packages are missing.
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        from bert.common.jobs import beam_runner
    except ImportError:
        raise errors.missing_packages(
            "beam", "apache_beam", needed_by="--runner"
        ) from None
    else:
        beam_runner.check(settings.runner, beam_options)
    finally:
        logging.disable(level)


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
    runner = settings.runner
    if not runner:
        with Pool(runners.opener(job), num_processes) as pool:

            def run_local(*arguments, **named):
                return runners.map_shown(pool, *arguments, **named)

            yield run_local
        return

    from bert.common.jobs import beam_runner  # a package that few install

    def run_beam(work, items, *_, **__):
        # A worker of a killed run may still write its own results.
        path = f"{job.folder}/results-{uuid.uuid4().hex}.json"
        return beam_runner.run(job, work, items, path, runner, options)

    yield run_beam
