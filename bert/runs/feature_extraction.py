"""Extracts contextual vectors of text lines from encoder layers.

lines -> LayerOutputs.encode -> packed rows -> engine -> vectors -> file
"""

import itertools
import re
from collections.abc import Iterator
from typing import Any

from bert.common import flags, storage, text_lines
from bert.common.errors import UserError
from bert.common.progress import Progress, log
from bert.data import embedding_files, sequence_packing
from bert.data.sequences import Encoded
from bert.data.text import vocabulary_checks
from bert.inference.predictor import Predictor
from bert.modeling.engines import openvino_engine
from bert.modeling.engines.openvino_engine import OpenVINOEngine
from bert.tasks.features.settings import Extraction
from bert.tasks.features.task import TEXT, TEXT_B, LayerOutputs
from bert.tasks.task import AT_ONCE
from bert.training.settings import Devices

_MAX_BYTES = 1 << 28  # of the outputs that are sorted by length together
_MAX_BATCHES = 8


class LineReader:
    """Reads and tokenizes the input lines.

    Args:
        extraction: checked settings, see `settings.check`.
        task: the task, which tokenizes.

    Attributes:
        truncated: number of lines truncated to --max_seq_length so far.
    """

    def __init__(self, extraction: Extraction, task: LayerOutputs):
        self._extraction, self._task = extraction, task
        path = extraction.settings.input_file
        self._files = storage.list_files(path, "input_file")
        self.truncated = 0

    def read(self) -> Iterator[Encoded]:
        """Yields the sequence of each line, including blank lines."""
        is_first = True
        for lines in self._chunks():
            examples = [*map(_example, lines)]

            # Check the vocabulary with the first lines.
            if is_first:
                is_first, model = False, self._extraction.model
                vocabulary_checks.warn(
                    model.tokenizer,
                    model.config.vocab_size,
                    model.config_file,
                    filter(None, (y for x in examples for y in x.values())),
                    model.casing,
                )
            for x in self._task.encode(examples):
                self.truncated += x.is_truncated
                yield x

    def _chunks(self) -> Iterator[list[str]]:
        """Yields lists of lines, and shows the progress."""
        sizes = [storage.size(path) for path in self._files]
        progress, done = Progress("vectors", sum(sizes) / 1e6, "MB"), 0

        def advance(position: int) -> None:
            progress.update((done + position) / 1e6)

        for path, size in zip(self._files, sizes, strict=True):
            lines = text_lines.lines(path, advance)
            while chunk := list(itertools.islice(lines, AT_ONCE)):
                yield [line.strip() for _, line in chunk]
            done += size
            advance(0)


def _example(line: str) -> dict[str, str]:
    """The one or two texts of a line; the second may be empty."""
    pair = re.fullmatch(r"(.*) \|\|\| (.*)", line)
    return {TEXT: pair[1], TEXT_B: pair[2]} if pair else {TEXT: line}


def extract(
    extraction: Extraction, task: LayerOutputs, reader: LineReader
) -> Iterator[embedding_files.Vectors]:
    """Yields the vectors of each line, in the order of the input.

    Args:
        extraction: checked settings, see `settings.check`.
        task: the task.
        reader: reads the input lines.
    """
    settings, tokens = extraction.settings, extraction.model.tokenizer.tokens
    batch_tokens = settings.batch_size * settings.max_seq_length

    # The outputs of the layers may be larger than the memory.
    size = 4 * len(extraction.layers) * extraction.model.config.hidden_size
    size *= max(batch_tokens, sequence_packing.MAX_TOKENS)
    batches = max(1, min(_MAX_BATCHES, _MAX_BYTES // size))
    predictor = Predictor(task, _engine(extraction), batch_tokens, batches)
    for encoded, values in predictor.compute(reader.read()):
        ((ids, _),) = encoded.rows
        yield embedding_files.Vectors([tokens[i] for i in ids], ids, values)


def _network_path(extraction: Extraction) -> str | None:
    """Returns the folder of the OpenVINO network, or None for Keras."""
    settings, model = extraction.settings, extraction.model
    is_device_given = settings.use_tpu or settings.distribution != "auto"

    # A network has the logits of its task, or the last layer.
    if model.task is not None or not extraction.needs_last_layer_only:
        return None
    if is_device_given and model.format != "openvino":
        return None
    return openvino_engine.find_default(model.path)


def _engine(extraction: Extraction) -> Any:
    """Returns a function from packed rows to float32 [R, W, K, H]."""
    settings, model = extraction.settings, extraction.model
    if path := _network_path(extraction):
        network = OpenVINOEngine(path)
        log(network.description)
        return lambda inputs: network(inputs)[:, :, None]

    from bert.modeling.engines.keras_engine import (
        KerasEngine,  # imports TensorFlow
    )

    devices = flags.as_dict(settings, of=Devices)
    engine = KerasEngine.load(model, layer=extraction.layers, devices=devices)
    log(engine.description)
    return engine


def write(extraction: Extraction) -> str:
    """Writes the output.

    Args:
        extraction: checked settings, see `settings.check`.

    Returns:
        a log line about the output.

    Raises:
        UserError: if the input is empty, or the output cannot be written.
    """
    settings, model = extraction.settings, extraction.model
    task = LayerOutputs(
        model.tokenizer,
        settings.max_seq_length,
        extraction.how,
        settings.layer_pooling,
        extraction.prompt,
    )
    reader = LineReader(extraction, task)

    is_pooled, count = extraction.how.pooling != "none", 0
    layers = extraction.layers if settings.layer_pooling == "none" else None
    opened = embedding_files.FORMATS[settings.output_format]

    with opened(settings.output_file, layers, is_pooled) as write_next:
        for vectors in extract(extraction, task, reader):
            write_next(vectors)
            count += 1
        if not count:
            raise UserError(
                "no lines",
                path=settings.input_file,
                expected="one text per line",
            )

    # Log.
    if reader.truncated:
        log(
            f"{reader.truncated:,} lines were truncated to "
            f"{settings.max_seq_length} tokens; see --max_seq_length"
        )
    kind = "embeddings" if is_pooled else "token vectors"
    return f"wrote the {kind} of {count:,} lines to {settings.output_file}"
