"""Predicts the rows of large files: the job of predict.py --output_file."""

import dataclasses
import functools
import gzip
import io
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from bert.common import errors
from bert.common.errors import UserError, printable
from bert.common.formats import downloads, endings, parquet_files
from bert.common.formats.json_files import Json
from bert.common.progress import counted, log
from bert.common.text_lines import Span
from bert.inference import jsonl, row_job
from bert.inference.predictor import Predictor, network_of, open_model
from bert.inference.row_job import Partition, RowJob
from bert.inference.settings import KERAS, OPENVINO, Settings

_JOIN = {  # format of the output -> function that joins the parts
    "json": row_job.copy_parts,
    "parquet": parquet_files.join_lines,
}


@dataclasses.dataclass(frozen=True)
class PredictionJob(RowJob):
    """Writes the predictions of partitions as lines of JSON.

    Attributes:
        settings: Settings. Settings of the script.
    """

    settings: Settings

    @functools.cached_property
    def _predictor(self) -> Predictor:
        settings = self.settings
        predictor = Predictor.open(
            settings.model, settings.engine, self.num_threads
        )
        settings.check_signature(predictor.task.signatures)
        return predictor

    @property
    def _inputs(self) -> Sequence[str]:
        task = self._predictor.task
        return self.settings.ordered(task.inputs, task.optional_inputs)

    def ranges(self, path: str) -> Iterator[tuple[Span, int]]:
        """See `RowJob`."""
        return jsonl.divide(
            self.settings,
            self._predictor.task,
            path,
            self._inputs,
            self.num_bytes,
        )

    def write(
        self,
        partition: Partition,
        stream: gzip.GzipFile | None,
        file: BinaryIO,
    ) -> dict[str, Json]:
        """See `RowJob`."""
        settings, span = self.settings, partition.span
        text = io.StringIO()
        printer = jsonl.PredictionPrinter(
            self._predictor,
            settings.batch_size,
            settings.strict,
            span.path,
            settings.signature,
            text,
            self.names_files,
        )

        # All rows at once: batches must not depend on how the file was read.
        read = jsonl.read(
            settings,
            self._predictor.task,
            span.path,
            self._inputs,
            span,
            stream,
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
            `row_job.compute`.
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
    job = PredictionJob.open(
        settings,
        input_file,
        output_file,
        {"model": model.digest(), "engine": engine},
        bool(network),
        settings,
    )

    found = row_job.compute(job, settings, beam_options, _JOIN[kind])
    total = jsonl.Counts()
    for of_part in found:
        of_part.pop(parquet_files.SCHEMA, None)
        total.add(jsonl.Counts(**of_part))
    for line in total.notes():
        log(line)
    shown = ", ".join(map(printable, job.outputs))
    print(f"wrote {counted(total.lines, 'prediction')} to {shown}")
