"""Forecast of the records of a corpus: their number, size and time.

A sample of the corpus is read, and its records are made in memory.
"""

import bisect
import dataclasses
import gzip
import hashlib
import io
import itertools
import math
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator

import numpy as np

from common import storage
from common.errors import UserError
from common.progress import duration, say
from data.corpus import documents as corpus_lib
from data.pretraining import packing, partitions
from data.pretraining.settings import InstanceSettings
from data.records import shuffle
from data.records import writer as records

SAMPLE_BYTES = 4_000_000  # of text of each group
_SPOTS = 16  # of a group, where the sample is read
_FARTHEST = 256_000_000  # bytes of a compressed file that are skipped at most
_START = 0.5  # seconds until processes work


@dataclasses.dataclass(frozen=True)
class Forecast:
    """The result of a run.

    Attributes:
        sample_bytes, text_bytes: size of the text that was read, and of all.
        counts: with the names of `partitions.Part`, of all records.
        record_bytes: bytes of all shards.
        seconds: time of the run on this machine.
    """

    sample_bytes: float
    text_bytes: int
    counts: dict[str, int]
    record_bytes: int
    seconds: float


@dataclasses.dataclass(frozen=True)
class _Sample:
    """Some documents of a group, and estimates of the whole group.

    Attributes:
        texts: the documents, each as its lines.
        corpus: files of the group, with estimated counts.
        share: bytes that were read, as a share of the group; more than 1 if
            large documents were read several times.
        seconds: time to read the whole group.
    """

    texts: list[list[str]]
    corpus: corpus_lib.Corpus
    share: float
    seconds: float


def make(
    inputs: dict[str, list[str]],
    make_plan: Callable[[dict[str, corpus_lib.Corpus]], partitions.Plan],
    num_processes: int,
    max_document_mb: int,
    seed: int,
) -> Forecast:
    """Reads a sample and makes its records; writes nothing.

    Args:
        inputs: name -> files of each group.
        make_plan: plans the partitions of the groups.
        num_processes: number of processes of the run.
        max_document_mb: as for `documents.documents`.
        seed: seed of the sample.

    Raises:
        UserError: a file cannot be read, or a group has too few documents.
    """
    samples = {
        name: _read_sample(files, max_document_mb, f"{seed}/{name}")
        for name, files in inputs.items()
    }
    plan = make_plan({name: x.corpus for name, x in samples.items()})
    worker = partitions.Worker(plan.recipe)
    start = time.perf_counter()
    worker.tokenize([["warm"], ["up"]])
    seconds = time.perf_counter() - start
    num_processes = min(num_processes, len(plan.passes), os.cpu_count() or 1)
    counts, size = Counter(), 0.0
    for name, group in plan.groups.items():
        sample = samples[name]
        found, sample_bytes, time_once, time_pass = _make_sample(worker, sample)
        for key in found:
            often = group.passes if key not in _ONCE else 1
            counts[key] += found[key] * often / sample.share
        size += sample_bytes * group.passes / sample.share
        work = (time_once + time_pass * group.passes) / sample.share
        seconds += 2 * sample.seconds + work / num_processes
    if num_processes > 1:
        seconds += _START
    # Parts are hashed and written by all processes, and then the shards.
    writers = (num_processes, min(num_processes, plan.recipe.num_shards))
    seconds += sum(_shard_seconds(size) / writer for writer in writers)
    whole = {name: round(count) for name, count in counts.items()}
    text = [(x.share, x.corpus.num_bytes) for x in samples.values()]
    return Forecast(
        sum(min(1, share) * total for share, total in text),
        sum(total for _, total in text),
        whole,
        round(size),
        seconds,
    )


def report(forecast: Forecast, num_shards: int, num_processes: int) -> str:
    """Three lines: what was read; instances and disk; time."""
    counts, size = forecast.counts, forecast.record_bytes / 1e6
    return (
        f"forecast from {forecast.sample_bytes / 1e6:,.1f} of "
        f"{forecast.text_bytes / 1e6:,.1f} MB of text; nothing is written\n"
        f"about {counts['instances']:,} instances in {counts['records']:,} "
        f"records: {size:,.1f} MB in {num_shards} "
        f"file{'s' * (num_shards != 1)}, and {2 * size:,.1f} MB of disk while "
        "they are made\n"
        f"about {duration(forecast.seconds)} with {num_processes} "
        f"process{'es' * (num_processes != 1)} on this machine; of all text:"
    )


def check_disk(
    plan: partitions.Plan,
    corpora: dict[str, corpus_lib.Corpus],
    writer: records.ShardWriter,
) -> None:
    """Checks that the disk has space for the text, the parts and the shards.

    Raises:
        UserError: it has not. If that depends on the script of the text, it
            is a warning.
    """
    output = sum(
        group.passes * estimate_bytes(corpora[name], plan.recipe.settings)
        for name, group in plan.groups.items()
    )
    text = sum(corpus.num_bytes for corpus in corpora.values())
    # The text of a partition is removed when its records are made.
    needed = max(text, output)
    if not storage.is_remote(writer.folder):
        needed += output
    needed -= sum(
        storage.size(os.path.join(writer.scratch, name))
        for name in storage.list_folder(writer.scratch)
    )
    free = storage.free_space(writer.scratch)
    if free is not None and needed > free:
        error = UserError(
            f"needs about {needed / 1e6:,.1f} MB while the records are made, "
            f"{free / 1e6:,.1f} MB free",
            path=writer.folder,
            expected=f"space for twice {output / 1e6:,.1f} MB of records",
            fix="free space, or lower --dupe_factor",
        )
        # Letters of three bytes make a third of the tokens.
        if needed > 3 * free:
            raise error
        say(f"warning: {error}")


def estimate_bytes(
    corpus: corpus_lib.Corpus, settings: InstanceSettings
) -> float:
    """Estimates the bytes of the records of one pass over a group.

    For usual text: a token has four bytes or more, and two thirds of a
    sequence are new text, as random next sentences are read again.
    """
    length = settings.max_seq_length
    masked = settings.max_predictions_per_seq
    tokens = corpus.num_bytes / 4.5
    instances = 0.2 * corpus.num_documents + tokens / (0.65 * length)
    size = 230 + 3.8 * length + 7 * masked
    if settings.pack_sequences:
        instances = max(1, 0.77 * instances)
        size += 2 * length + 10 * packing.max_sequences_per_row(length)
    return instances * size


_ONCE = (
    *("documents", "sentences", "continued_lines"),
    *("tokens", "unknown_tokens"),
)


def _make_sample(
    worker: partitions.Worker, sample: _Sample
) -> tuple[dict[str, int], int, float, float]:
    """Makes the records of one pass over a sample.

    Returns:
        counts, bytes of the records with their frames, seconds to tokenize,
        seconds of the pass.
    """
    start = time.perf_counter()
    documents = worker.tokenize(sample.texts)
    tokenized = time.perf_counter()
    serialized, counts = worker.make_pass(documents, 0, 0, 1.0)
    made = time.perf_counter()
    # The first pass also fills tables; the others count.
    serialized, counts = worker.make_pass(documents, 1, 0, 2.0)
    portions = shuffle.distribute(serialized, 1, "forecast")
    end = time.perf_counter()
    counts.update(worker.count_documents(documents, sample.texts))
    counts["records"] = len(serialized)
    size = sum(map(len, portions)) - 4 * counts["records"]
    return counts, size, tokenized - start, end - made


def _shard_seconds(size: float) -> float:
    """Seconds to shuffle, hash and write some bytes, by a small trial."""
    content = bytes(1 << 24)
    start = time.perf_counter()
    hashlib.sha256(content).digest()
    return 3 * (time.perf_counter() - start) * size / len(content)


def _read_sample(files: list[str], max_document_mb: int, key: str) -> _Sample:
    """Reads documents at random positions of files, or a small corpus whole."""
    sizes = [corpus_lib.file_size(path) for path in files]
    spots: dict[str, list[int]] = {}
    most: float = SAMPLE_BYTES / _SPOTS
    if sum(sizes) <= SAMPLE_BYTES:
        spots, most = dict.fromkeys(files, [0]), math.inf
    else:
        rng = random.Random(key)
        ends = list(itertools.accumulate(sizes))
        for offset in sorted(rng.randrange(ends[-1]) for _ in range(_SPOTS)):
            number = bisect.bisect_right(ends, offset)
            before = ends[number] - sizes[number]
            spots.setdefault(files[number], []).append(offset - before)
    texts: list[bytes] = []
    ratios = []
    for path, offsets in spots.items():
        read = _read_packed if path.endswith(".gz") else _read_plain
        found, ratio = read(path, offsets, most, max_document_mb)
        texts += found
        ratios += [ratio] * len(offsets)
    if len(texts) < 2:  # of few large documents
        everything = (
            text
            for path in files
            for text in corpus_lib.documents(path, None, max_document_mb)
        )
        texts = _take(everything, SAMPLE_BYTES, least=2)
    corpus_lib.check_any(len(texts), files)
    size = sum(map(len, texts))
    whole = size
    if most < math.inf:
        whole = sum(sizes) * sum(ratios) / len(ratios)
    counts = np.zeros([2, len(files)], np.int64)  # of all files, in the first
    # Of two documents, a long one may be read several times.
    number = max(min(2, len(texts)), round(len(texts) * whole / size))
    counts[:, 0] = number, round(whole)
    return _Sample(
        [text.decode()[:-1].split("\n") for text in texts],
        corpus_lib.Corpus(files, *counts),
        size / whole,
        _read_seconds(texts, any(x.endswith(".gz") for x in files))
        * whole
        / size,
    )


def _read_plain(
    path: str, offsets: list[int], most: float, max_document_mb: int
) -> tuple[list[bytes], float]:
    """Reads up to `most` bytes of documents from each offset of a file.

    Returns:
        the documents; bytes of text of a byte of the file.
    """
    texts = []
    for offset in offsets:

        def open_there(path, mode, offset=offset):
            file = storage.open_file(path, mode)
            if offset:
                file.seek(offset)
                file.readline()
            return file

        found = corpus_lib.documents(path, None, max_document_mb, open_there)
        try:
            if offset:
                next(found, None)  # its beginning is missing
            texts += _take(found, most)
        except UserError:
            # Its line counts from the offset; read again, it counts from 1.
            for _ in corpus_lib.documents(path, None, max_document_mb):
                pass
    return texts, 1.0


def _read_packed(
    path: str, offsets: list[int], most: float, max_document_mb: int
) -> tuple[list[bytes], float]:
    """Like `_read_plain`, for a compressed file, which is read in order."""
    seen, position, ratio = 0, 0, 1.0

    def on_read(now):
        nonlocal position, ratio
        position, ratio = now, seen / now

    def counted():
        nonlocal seen, ratio
        for text in corpus_lib.documents(path, on_read, max_document_mb):
            seen += len(text)
            yield text
        if position:  # with the last document, which ends with the file
            ratio = seen / position

    texts, documents = [], counted()
    for offset in offsets:
        if offset > _FARTHEST:
            break
        while position < offset and next(documents, None) is not None:
            pass
        texts += _take(documents, most)
    while seen < SAMPLE_BYTES and next(documents, None) is not None:
        pass
    return texts, ratio


def _take(
    documents: Iterator[bytes], most: float, least: int = 1
) -> list[bytes]:
    """Takes `least` documents, and more until they have `most` bytes."""
    found, size = [], 0
    for text in documents:
        found.append(text)
        size += len(text)
        if size >= most and len(found) >= least:
            break
    return found


def _read_seconds(texts: list[bytes], packed: bool) -> float:
    """Seconds to split text into documents, and to decompress it."""
    content = b"\n".join(texts)
    start = time.perf_counter()
    for _ in corpus_lib.documents("", open_file=lambda *_: io.BytesIO(content)):
        pass
    seconds = time.perf_counter() - start
    if packed:
        content = gzip.compress(content, 6)
        start = time.perf_counter()
        gzip.decompress(content)
        seconds += time.perf_counter() - start
    return seconds
