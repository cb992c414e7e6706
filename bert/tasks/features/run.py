"""Extracts contextual vectors of text lines from encoder layers."""

import itertools
import re
from collections.abc import Iterator

import numpy as np

from bert.common import storage, text_lines
from bert.common.errors import UserError
from bert.common.progress import Progress, log
from bert.data import (
    bucketing,
    embedding_files,
    features,
    sequence_packing,
    sequences,
)
from bert.data.sequences import Row
from bert.data.text import vocabulary, vocabulary_checks
from bert.modeling import openvino_network
from bert.modeling.openvino_network import Network
from bert.tasks.features.settings import Extraction

_WINDOW_BYTES = 1 << 28  # maximum size of buffered vectors
_WINDOW_BATCHES = 64
_LINES_AT_ONCE = 1024


class Reader:
    """Reads and tokenizes the input lines.

    Args:
        extraction: checked settings, see `settings.check`.

    Attributes:
        truncated: number of lines truncated to --max_seq_length so far.
    """

    def __init__(self, extraction: Extraction):
        settings = extraction.settings
        self._model = extraction.model
        self._files = storage.list_files(settings.input_file, "input_file")
        self._max_seq_length = settings.max_seq_length
        self._tokenizer = extraction.model.tokenizer
        self._prompt = extraction.prompt
        self.truncated = 0
        self._is_first = True

    def read(self) -> Iterator[bucketing.EncodedExample]:
        """Yields ids and segment ids of each line, including blank lines."""
        sizes = [storage.size(path) for path in self._files]
        progress, done = Progress("vectors", sum(sizes) / 1e6, "MB"), 0

        def advance(position: int) -> None:
            progress.update((done + position) / 1e6)

        for path, size in zip(self._files, sizes, strict=True):
            lines = text_lines.lines(path, advance)
            while chunk := list(itertools.islice(lines, _LINES_AT_ONCE)):
                yield from self._tokenize([line.strip() for _, line in chunk])
            done += size
            advance(0)

    def _tokenize(self, lines: list[str]) -> Iterator[bucketing.EncodedExample]:
        pairs = [re.fullmatch(r"(.*) \|\|\| (.*)", line) for line in lines]

        # Two texts per line; the second may be empty.
        texts = [
            text
            for line, pair in zip(lines, pairs)
            for text in (pair.groups() if pair else (line, ""))
        ]
        texts[::2] = [self._prompt + text for text in texts[::2]]

        # Check the vocabulary with the first lines.
        if self._is_first:
            self._is_first = False
            vocabulary_checks.warn(
                self._tokenizer,
                self._model.config.vocab_size,
                self._model.config_file,
                filter(None, texts),
                self._model.casing,
            )
        ids = iter(self._tokenizer.fast.ids_of_lines(texts))
        for a, b in zip(ids, ids):
            space = self._max_seq_length - (3 if b else 2)
            self.truncated += len(a) + len(b) > space
            a, b = sequences.truncate_pair(a, b, space)
            vocab = self._tokenizer.vocab
            yield sequences.join_pair(
                a, b, vocab[vocabulary.CLS], vocab[vocabulary.SEP]
            )


def extract(
    extraction: Extraction, reader: Reader
) -> Iterator[embedding_files.Vectors]:
    """Yields the vectors of each line, in the order of the input.

    Args:
        extraction: checked settings, see `settings.check`.
        reader: reads the input lines.
    """
    tokens = extraction.model.tokenizer.tokens
    rows = reader.read()
    if path := _network_path(extraction):
        computed = _of_network(extraction, rows, path)
    else:
        computed = _of_layers(extraction, rows)

    for ids, x in computed:
        found = extraction.how.embed_one(x)
        yield embedding_files.Vectors([tokens[i] for i in ids], ids, found)


def _network_path(extraction: Extraction) -> str | None:
    """Returns the folder of the OpenVINO network, or None for Keras."""
    settings, model = extraction.settings, extraction.model
    is_device_given = settings.use_tpu or settings.distribution != "auto"

    # A network has the logits of its task, or the last layer.
    if model.task is not None or not extraction.needs_last_layer_only:
        return None
    if is_device_given and model.format != "openvino":
        return None
    return openvino_network.find_default(model.path)


def _of_network(
    extraction: Extraction, rows: Iterator[Row], path: str
) -> Iterator:
    """Yields ids and outputs of rows, computed by an OpenVINO network.

    The outputs are float32 [S, 1, H], or [S, H] if layers are mixed.
    """
    network = Network(path)
    log(network.description)
    is_mixed = extraction.settings.layer_pooling != "none"
    while chunk := [*itertools.islice(rows, window(extraction))]:
        outputs = sequence_packing.map_packed(network, chunk, False)
        for (ids, _), x in zip(chunk, outputs):
            yield ids, x if is_mixed else x[:, np.newaxis]


def _of_layers(extraction: Extraction, rows: Iterator[Row]) -> Iterator:
    """Yields ids and outputs of rows, computed on any device.

    The outputs are float32 [S, K, H], or [S, ...] if layers are mixed.
    """
    from bert.tasks.features import encoder_layers  # imports TensorFlow

    settings = extraction.settings
    predictor = encoder_layers.make_predictor(extraction)
    lengths = bucketing.bucket_lengths(settings.max_seq_length)
    if predictor.is_static:
        lengths = bucketing.xla_lengths(lengths)

    def run(batch):
        found = predictor(batch)["vectors"]
        sizes = batch[features.INPUT_MASK].sum(1)
        # Copy, as a view would keep the whole batch in memory.
        return [
            (ids[:size].tolist(), x[:size].copy())
            for ids, size, x in zip(batch[features.INPUT_IDS], sizes, found)
        ]

    return bucketing.map_sorted_by_length(
        rows, run, lengths, settings.batch_size, window(extraction)
    )


def window(extraction: Extraction) -> int:
    """Number of lines to sort by length together, limited by memory."""
    settings = extraction.settings

    # In bytes, as float32.
    size = 4 * len(extraction.layers) * extraction.model.config.hidden_size
    if extraction.how.pooling == "none":
        size *= settings.max_seq_length
    batches = _WINDOW_BYTES // (size * settings.batch_size)
    return settings.batch_size * max(1, min(_WINDOW_BATCHES, batches))


def write(extraction: Extraction) -> str:
    """Writes the output.

    Args:
        extraction: checked settings, see `settings.check`.

    Returns:
        a log line about the output.

    Raises:
        UserError: if the input is empty, or the output cannot be written.
    """
    settings, reader = extraction.settings, Reader(extraction)
    is_pooled, count = extraction.how.pooling != "none", 0
    layers = extraction.layers if settings.layer_pooling == "none" else None
    opened = embedding_files.FORMATS[settings.output_format]
    with opened(settings.output_file, layers, is_pooled) as write_next:
        for vectors in extract(extraction, reader):
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
