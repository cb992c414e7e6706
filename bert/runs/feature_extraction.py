"""Extracts contextual vectors of rows from encoder layers.

rows -> LayerOutputs.encode -> packed rows -> engine -> vectors -> parts -> file
"""

import dataclasses
import functools
import gzip
import itertools
import re
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from bert.common import flags
from bert.common.errors import UserError, printable
from bert.common.formats.json_files import Json
from bert.common.formats.parquet_files import SCHEMA
from bert.common.progress import counted, log
from bert.common.text_lines import Span
from bert.data import embedding_files, sequence_packing
from bert.data.embedding_files import Vectors
from bert.data.text import vocabulary_checks
from bert.inference import jsonl, row_job
from bert.inference.jsonl import Example
from bert.inference.predictor import Compute, Predictor, load_keras
from bert.inference.row_job import Partition, RowJob
from bert.inference.settings import KERAS, OPENVINO
from bert.modeling.engines import openvino_engine
from bert.modeling.engines.openvino_engine import OpenVINOEngine
from bert.tasks.features.settings import Extraction
from bert.tasks.features.task import TEXT, TEXT_B, LayerOutputs
from bert.tasks.task import AT_ONCE
from bert.training.settings import Devices

_MAX_BYTES = 1 << 28  # of the outputs that are sorted by length together
_MAX_BATCHES = 8


class RowReader:
    """Reads rows of texts or pairs of texts.

    Args:
        extraction: checked settings, see `settings.check`.
    """

    def __init__(self, extraction: Extraction):
        self._settings, self._task = extraction.settings, task_of(extraction)

    def divide(self, path: str, num_bytes: float) -> Iterator[tuple[Span, int]]:
        """See `RowJob.ranges`."""
        return jsonl.divide(
            self._settings, self._task, path, (TEXT,), num_bytes
        )

    def read(
        self, path: str, span: Span | None = None, stream=None
    ) -> Iterator[Example]:
        """Yields the examples of a file, including blank lines.

        Args:
            path, span, stream: see `jsonl.read`.
        """
        settings = self._settings
        is_plain = not settings.reads_table(path)
        is_plain = is_plain and not settings.reads_json(path)
        for examples in jsonl.read(
            settings, self._task, path, (TEXT,), span, stream
        ):
            for x in examples:
                fields = x.fields
                if is_plain and isinstance(fields, dict):
                    x = x._replace(fields=_pair_of(fields[TEXT].strip()))
                yield x


def _pair_of(line: str) -> dict[str, str]:
    """The one or two texts of a line; the second may be empty."""
    pair = re.fullmatch(r"(.*) \|\|\| (.*)", line)
    return {TEXT: pair[1], TEXT_B: pair[2]} if pair else {TEXT: line}


@dataclasses.dataclass(frozen=True)
class EmbeddingJob(RowJob):
    """Writes the vectors of partitions, see `RowJob`.

    Args:
        extraction: checked settings, see `settings.check`.
    """

    extraction: Extraction

    @functools.cached_property
    def _predictor(self) -> Predictor:
        engine = _engine(self.extraction, self.num_threads)
        return predictor_of(self.extraction, engine)

    @functools.cached_property
    def _reader(self) -> RowReader:
        return RowReader(self.extraction)

    def ranges(self, path: str) -> Iterator[tuple[Span, int]]:
        """See `RowJob`."""
        return self._reader.divide(path, self.num_bytes)

    def write(
        self,
        partition: Partition,
        stream: gzip.GzipFile | None,
        file: BinaryIO,
    ) -> dict[str, Json]:
        """See `RowJob`."""
        extraction, span = self.extraction, partition.span
        examples = [*self._reader.read(span.path, span, stream)]
        rows, truncated = self._vectors(examples, span.path)
        pooled = extraction.how.pooling != "none"
        kind = extraction.output_format

        if kind == "jsonl":
            for number, row in enumerate(rows, partition.first):
                line = embedding_files.json_line(
                    number, row, extraction.separate_layers, pooled
                )
                file.write(line.encode())
        else:
            embedding_files.write_arrays(rows, pooled, file, partition.first)

        counts: dict[str, Json] = {
            "rows": len(rows),
            "truncated": truncated,
            "errors": sum(x.error is not None for x in rows),
        }
        if kind == "parquet":
            counts[SCHEMA] = embedding_files.schema_of(rows)
        return counts

    def _vectors(
        self, examples: list[Example], path: str
    ) -> tuple[list[Vectors], int]:
        """Returns the vectors of examples, and the number of truncated ones."""
        predictor, tokens = self._predictor, self.extraction.model.tokenizer
        valid = [x.fields for x in examples if isinstance(x.fields, dict)]
        encoded = predictor.encode(valid or [{TEXT: ""}])
        computed = predictor.compute(encoded)
        found = [(x.sequences[0][0], values) for x, values in computed]
        rest, shape = iter(found), found[0][1].shape

        rows = []
        for line, fields, kept in examples:
            kept = {k: x for k, x in kept.items() if k == "id"}
            if isinstance(fields, dict):
                ids, values = next(rest)
                names = [tokens.tokens[i] for i in ids]
                rows.append(Vectors(names, ids, values, kept))
                continue
            message = str(fields).removeprefix(f"{path}:{line}: ")
            error = {"error": message, "line": line}
            if self.names_files:
                error["file"] = path
            pooled = self.extraction.how.pooling != "none"
            size = shape if pooled else (0, *shape[1:])
            nothing = np.full(size, np.nan, np.float32)
            rows.append(Vectors([], [], nothing, kept, error))
        return rows, sum(x.is_truncated for x in encoded)


def task_of(extraction: Extraction) -> LayerOutputs:
    """Returns the task of vectors.

    Args:
        extraction: checked settings, see `settings.check`.
    """
    return LayerOutputs(
        extraction.model.tokenizer,
        extraction.max_length,
        extraction.how,
        extraction.settings.layer_pooling,
        extraction.prompt,
    )


def predictor_of(extraction: Extraction, engine: Compute) -> Predictor:
    """Returns the predictor of vectors.

    Args:
        extraction: checked settings, see `settings.check`.
        engine: function of packed rows.
    """
    settings, model = extraction.settings, extraction.model

    # The outputs of the layers may be larger than the memory.
    batch_tokens = settings.batch_size * extraction.max_length
    size = 4 * len(extraction.layers) * model.config.hidden_size
    size *= max(batch_tokens, sequence_packing.MAX_TOKENS)
    batches = max(1, min(_MAX_BATCHES, _MAX_BYTES // size))
    return Predictor(task_of(extraction), engine, batch_tokens, batches)


def _network_path(extraction: Extraction) -> str | None:
    """Returns the folder of the OpenVINO network, or None for Keras."""
    settings, model = extraction.settings, extraction.model
    is_device_given = settings.use_tpu or settings.distribution != "auto"

    # A network has the logits of its task, or the last layer.
    if model.task_json is not None or not extraction.needs_last_layer_only:
        return None
    if is_device_given and model.format != "openvino":
        return None
    return openvino_engine.find_default(model.path)


def _engine(extraction: Extraction, num_threads: int | None) -> Compute:
    """Returns a function from packed rows to float32 [R, W, K, H]."""
    settings, model = extraction.settings, extraction.model
    if path := _network_path(extraction):
        network = OpenVINOEngine(path, num_threads)
        log(network.description)
        return lambda inputs: network(inputs)[:, :, None]

    devices = flags.as_dict(settings, of=Devices)
    engine = load_keras(model, layer=extraction.layers, devices=devices)
    log(engine.description)
    return engine


def check_first_rows(extraction: Extraction, files: list[str]) -> None:
    """Warns if the vocabulary does not fit the first rows.

    Args:
        extraction: checked settings, see `settings.check`.
        files: paths of the input.

    Raises:
        UserError: most of these rows are invalid.
    """
    model = extraction.model
    reader = RowReader(extraction)
    rows = (x.fields for path in files for x in reader.read(path))
    first = [*itertools.islice(rows, AT_ONCE)]
    invalid = [x for x in first if isinstance(x, UserError)]
    if len(invalid) > len(first) / 2:  # a file of another kind
        raise invalid[0]
    vocabulary_checks.warn(
        model.tokenizer,
        model.config.vocab_size,
        model.config_file,
        (y for x in first if isinstance(x, dict) for y in x.values() if y),
        model.casing,
    )


def write(extraction: Extraction, beam_options: list[str]) -> str:
    """Writes the output.

    Args:
        extraction: checked settings, see `settings.check`.
        beam_options: Beam's command-line options.

    Returns:
        a log line about the output.

    Raises:
        UserError: if the input is empty, or the output cannot be written.
    """
    settings, network = extraction.settings, _network_path(extraction)
    kind, pooled = extraction.output_format, extraction.how.pooling != "none"
    join = row_job.copy_parts
    if kind != "jsonl":
        join = embedding_files.joiner(kind, extraction.separate_layers, pooled)

    job = EmbeddingJob.open(
        settings,
        settings.input_file,
        settings.output_file,
        {
            "model": extraction.model.digest(),
            "engine": OPENVINO if network else KERAS,
        },
        bool(network),
        extraction,
    )
    check_first_rows(extraction, job.files)
    counts = row_job.compute(job, settings, beam_options, join)

    # Log.
    names = "rows", "errors", "truncated"
    total = {name: sum(x[name] for x in counts) for name in names}
    if total["errors"]:
        log(
            "warning: rows with an error instead of a vector: "
            f"{total['errors']:,} of {total['rows']:,}"
        )
    if total["truncated"]:
        were = "was" if total["truncated"] == 1 else "were"
        log(
            f"{counted(total['truncated'], 'line')} {were} truncated to "
            f"{extraction.max_length} tokens; see --max_seq_length"
        )
    what = "embeddings" if pooled else "token vectors"
    shown = ", ".join(map(printable, job.outputs))
    return f"wrote the {what} of {counted(total['rows'], 'line')} to {shown}"
