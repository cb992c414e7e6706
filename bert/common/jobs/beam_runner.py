"""Runs a job with Apache Beam, whose workers may be on other machines.

    items -> results of a method of the job -> one file of all results

The process that launches the workers receives results as JSON. Errors are
results, too: Beam would retry and wrap a raised error.
"""

import contextlib
import io
import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import (
    PipelineOptions,
    PortableOptions,
)
from apache_beam.options.pipeline_options_validator import (
    PipelineOptionsValidator,
)
from apache_beam.runners.portability.job_server import JavaJarJobServer
from apache_beam.runners.portability.portable_runner import PortableRunner
from apache_beam.runners.runner import PipelineRunner, create_runner
from apache_beam.utils import shared

from bert.common import atomic, storage
from bert.common.errors import UserError
from bert.common.jobs import runners
from bert.common.jobs.runners import read_json

_RESULTS = -1  # key of all results


class Stage(beam.DoFn):
    """number, [item] -> results: (number, result, error).

    Args:
        job: dataclass. The job.
        work: callable. Computes the result of an item, a JSON value, with a
            copy of the job. The threads of a worker process share the copy
            and its cached values, such as a model.
    """

    def __init__(self, job: Any, work: Callable[[Any, Any], Any]):
        self._open, self._work = runners.opener(job), work
        self._shared = shared.Shared()

    def setup(self):
        """Opens the job, once in each process."""
        self._job = self._shared.acquire(self._open)

    def process(self, element):
        """Yields the result of an item."""
        number, (item, *_) = element
        result = error = None
        try:
            result = self._work(self._job, item)
        except UserError as rejection:
            error = str(rejection)
        yield _RESULTS, (number, result, error)


class WriteResults(beam.DoFn):
    """results -> file.

    Args:
        path: str. The file.
    """

    def __init__(self, path: str):
        self._path = path

    def process(self, element):
        """Writes all results."""
        _, results = element
        atomic.write_whole(self._path, results_json(results), is_shared=True)
        return ()


def check(runner: str, options: list[str]) -> None:
    """Checks a runner and its options, and fetches its job server.

    Args:
        runner: str. Beam's name of the runner.
        options: list of str. Beam's command-line options.

    Raises:
        UserError: The runner does not exist, lacks options, or its job server
            cannot be downloaded.
    """
    named = f"--runner={runner}"
    try:
        made = create_runner(runner)
        if not isinstance(made, PipelineRunner):
            raise TypeError("not a runner")
    except (ValueError, ImportError, AttributeError, TypeError) as error:
        raise UserError(
            f"{named}: {error}", expected="a runner of Apache Beam"
        ) from None

    parsed = PipelineOptions([*options, named])
    mistakes = _mistakes(made, parsed)
    mistakes = mistakes or PipelineOptionsValidator(parsed, made).validate()
    if mistakes:
        raise UserError(
            f"{named}: {' '.join(mistakes)}",
            fix="pass Beam's options after --, such as -- --project=name",
        )

    # Flink and Spark have a job server in Java, unless one is running.
    is_running = parsed.view_as(PortableOptions).job_endpoint
    if isinstance(made, PortableRunner) and not is_running:
        try:
            server = made.default_job_server(parsed)
            server = getattr(server, "_job_server", server)
            if isinstance(server, JavaJarJobServer):
                server.local_jar(server.path_to_jar())
        except NotImplementedError:
            raise UserError(
                f"{named} without a job server",
                fix="pass -- --job_endpoint=host:port",
            ) from None
        except (RuntimeError, ValueError, OSError) as error:
            raise UserError(
                f"{named}: {str(error).splitlines()[0]}",
                fix="pass -- --job_endpoint=host:port of a running job server",
            ) from None


def _mistakes(runner: PipelineRunner, options: PipelineOptions) -> list[str]:
    """Lists invalid and unknown options."""
    usage = io.StringIO()
    try:
        with contextlib.redirect_stderr(usage):
            known = options.get_all_options()
            given = options.get_all_options(retain_unknown_options=True)
    except SystemExit:  # of argparse, after its usage
        return [usage.getvalue().rpartition("error: ")[2].strip()]

    if isinstance(runner, PortableRunner):  # its server may have more options
        return []
    return [f"unknown option --{x}." for x in sorted(given.keys() - known)]


def run(
    job: Any,
    work: Callable[[Any, Any], Any],
    items: Sequence[Any],
    path: str,
    runner: str,
    options: list[str],
) -> list:
    """Returns the results of items in order.

    Args:
        job, work: See `Stage`.
        items: sequence. The items.
        path: str. File of the results, which all machines can open.
        runner: str. Beam's name of the runner, such as `DirectRunner`.
        options: list of str. Beam's command-line options.

    Raises:
        UserError: The first error of an item.
    """
    if not items:
        return []
    _let_workers_import(storage.__file__.rpartition("/bert/")[0])
    with beam.Pipeline(
        runner, options=PipelineOptions(options, save_main_session=False)
    ) as pipeline:
        collection = pipeline | beam.Create(list(enumerate(items)))
        for stage in (Stage(job, work), WriteResults(path)):
            name = type(stage).__name__
            done = beam.ParDo(stage).with_output_types(tuple[int, Any])
            groups = collection | f"Before{name}" >> beam.GroupByKey()
            collection = groups | name >> done
    return read_results(path)


def results_json(rows: Iterable[tuple[int, Any, str | None]]) -> str:
    """Returns JSON of the results in order of their numbers, or of an error.

    Args:
        rows: iterable of (int, Any, str or None). Number of the item, result,
            and error; an item may occur twice.
    """
    ordered = sorted(rows, key=lambda row: row[0])
    errors = [error for _, _, error in ordered if error]
    return json.dumps(
        {
            "error": errors[0] if errors else None,
            "results": list({number: x for number, x, _ in ordered}.values()),
        }
    )


def read_results(path: str) -> list:
    """Reads a file of `results_json`.

    Raises:
        UserError: An item has an error.
    """
    result = read_json(path)
    if result["error"]:
        raise UserError(result["error"])
    return result["results"]


def _let_workers_import(root: str) -> None:
    """Makes the project importable in Beam's processes on this machine."""
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if root not in paths:
        paths = [root, *filter(None, paths)]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
