"""Predicts the rows of large files: the job of predict.py --output_file."""

import dataclasses
import functools
import gzip
import io
from collections.abc import Iterator
from typing import BinaryIO

from bert.common import errors
from bert.common.errors import UserError, printable
from bert.common.formats import downloads, endings, parquet_files
from bert.common.formats.json_files import Json
from bert.common.progress import counted, log
from bert.common.text_lines import Span
from bert.inference import jsonl, partitions
from bert.inference.partitions import Partition
from bert.inference.predictor import Predictor, network_of, open_model
from bert.inference.settings import KERAS, OPENVINO, Settings

_JOIN = {  # format of the output -> function that joins the parts
    "json": partitions.copy_parts,
    "parquet": parquet_files.join_lines,
}


class PredictionWriter:
    """Writes the predictions of partitions as lines of JSON.

    Args:
        settings: Settings. Settings of the script.
        num_threads: int or None. Number of threads of OpenVINO. None: one per
            core.
        names_files: bool. Whether an error names its file.
    """

    def __init__(
        self, settings: Settings, num_threads: int | None, names_files: bool
    ):
        self._settings, self._names_files = settings, names_files
        self._predictor = Predictor.open(
            settings.model, settings.engine, num_threads
        )
        task = self._predictor.task
        settings.check_signature(task.signatures)
        self._inputs = settings.ordered(task.inputs, task.optional_inputs)

    def divide(self, path: str, num_bytes: float) -> Iterator[tuple[Span, int]]:
        """See `partitions.Writer`."""
        return jsonl.divide(
            self._settings, self._predictor, path, self._inputs, num_bytes
        )

    def write(
        self,
        partition: Partition,
        stream: gzip.GzipFile | None,
        file: BinaryIO,
    ) -> dict[str, Json]:
        """See `partitions.Writer`."""
        settings, span = self._settings, partition.span
        text = io.StringIO()
        printer = jsonl.PredictionPrinter(
            self._predictor,
            settings.batch_size,
            settings.strict,
            span.path,
            settings.signature,
            text,
            self._names_files,
        )

        # All rows at once: batches must not depend on how the file was read.
        read = jsonl.read(
            settings, self._predictor, span.path, self._inputs, span, stream
        )
        printer.print([example for some in read for example in some])
        lines = text.getvalue().encode()
        file.write(lines)
        counts = dataclasses.asdict(printer.counts)
        if _format(settings) == "parquet":
            rows = parquet_files.objects(io.BytesIO(lines))
            counts[parquet_files.SCHEMA] = parquet_files.schema_of(rows)
        return counts


def _format(settings: Settings) -> str:
    """Returns the format of the output, by the ending of its name."""
    path = settings.output_file or ""
    return "" if path.endswith(".gz") else endings.format_of(path)


def write(settings: Settings, beam_options: list[str]) -> None:
    """Writes the predictions of all rows to --output_file.

    Args:
        settings: Settings. Settings of the script.
        beam_options: list of str. Beam's command-line options.

    Raises:
        UserError: A file cannot be read or written, or see
            `partitions.compute`.
    """
    input_file, output_file = settings.input_file, settings.output_file
    assert input_file and output_file, "a rule: one flag needs the other"
    kind = _format(settings)
    if kind not in _JOIN:
        raise UserError(
            f"--output_file={output_file}",
            expected="a name in .jsonl or .parquet",
        )
    if kind == "parquet":
        errors.check_packages("parquet", "pyarrow", needed_by="--output_file")

    folder = downloads.fetch(settings.model)
    network = network_of(folder, settings.engine)
    engine = OPENVINO if network else KERAS
    model = open_model(network or folder)
    job = partitions.open_job(
        settings,
        input_file,
        output_file,
        {"model": model.digest(), "engine": engine},
        bool(network),
        functools.partial(PredictionWriter, settings),
    )

    found = partitions.compute(job, settings, beam_options, _JOIN[kind])
    total = jsonl.Counts()
    for of_part in found:
        of_part.pop(parquet_files.SCHEMA, None)
        total.add(jsonl.Counts(**of_part))
    for line in total.notes():
        log(line)
    shown = ", ".join(map(printable, job.outputs))
    print(f"wrote {counted(total.lines, 'prediction')} to {shown}")
