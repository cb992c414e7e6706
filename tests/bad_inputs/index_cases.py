"""Indexes of checkpoints, and the file `checkpoint`, by their own protos."""

import functools
import pathlib
import struct

import numpy as np
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import tensor_bundle_pb2

from common.formats import checksums
from tests.bad_inputs.case import Case, pipe
from tests.helpers.sorted_table import MAGIC, block, framed, handle, varint

PATH = "model/bert_model.ckpt.index"
RUNS = ("doctor_checkpoint",)
NAME = b"bert/embeddings/word_embeddings"


def table(first: bytes, second: bytes | None = None, end=MAGIC) -> bytes:
    """A table of one block; `second` replaces the index block."""
    second = second or block([(0, b"z", handle(0, first))], [0])
    footer = varint(0) + varint(0) + handle(len(first), second)
    return first + second + footer.ljust(40, b"\0") + end


def header(**changed) -> bytes:
    """The header of a bundle."""
    values = {"num_shards": 1, **changed}
    return tensor_bundle_pb2.BundleHeaderProto(**values).SerializeToString()


def entry(
    dims=(1,), kind=types_pb2.DT_FLOAT, size=4, slices=(), unknown=False, **more
) -> bytes:
    """The entry of a tensor."""
    found = tensor_bundle_pb2.BundleEntryProto(dtype=kind, size=size, **more)
    for dim in dims:
        found.shape.dim.add(size=dim)
    found.shape.unknown_rank = unknown
    for start, length in slices:
        found.slices.add().extent.add(start=start, length=length)
    return found.SerializeToString()


def _index(value: bytes, key: bytes = NAME, **changed) -> bytes:
    entries = [(0, b"", header(**changed)), (0, key, value)]
    return table(block(entries, [0]))


def _plain(*entries: tuple, restarts=(0,)) -> bytes:
    return table(block([(0, b"", header()), *entries], list(restarts)))


def _strings(data: bytes, path: pathlib.Path) -> None:
    path.with_suffix(".data-00000-of-00001").write_bytes(data)
    size = len(data)
    path.write_bytes(_index(entry((2,), types_pb2.DT_STRING, size)))


def overlap(path: pathlib.Path) -> None:
    """Two tensors of the same bytes: together they are larger than the file."""
    values = struct.pack("<2f", 1, 2)
    path.with_suffix(".data-00000-of-00001").write_bytes(values)
    more = {"dims": (2,), "size": 8, "crc32c": checksums.masked_crc32c(values)}
    path.write_bytes(_plain((0, b"a", entry(**more)), (0, b"b", entry(**more))))


def _folder(path: pathlib.Path) -> None:
    path.unlink()
    path.mkdir()


def _pipe_of_data(path: pathlib.Path) -> None:
    pipe(path.with_suffix(".data-00000-of-00001"))


INDEXES = {
    "a negative size": (_index(entry((-1,))), "has the shape [-1]"),
    "a size of -2**63": (_index(entry((-(2**63),))), "has the shape [-9"),
    "an overflow": (_index(entry((2**33, 2**33))), "the data files have"),
    "an overflow to zero": (
        _index(entry((2**62, 2**62, 0), size=0)),
        "more than memory holds",
    ),
    "a bomb": (_index(entry((127,) * 9)), "the data files have"),
    "rank 255": (_index(entry((1,) * 255)), "has the shape"),
    "rank 300": (_index(entry((1,) * 300)), "has the shape"),
    "an unknown rank": (_index(entry((), unknown=True)), "has the shape []"),
    "no type": (_index(entry(kind=0)), "has the type DT_INVALID"),
    "an unknown type": (_index(entry(kind=99)), "has the type 99"),
    "a reference": (
        _index(entry(kind=types_pb2.DT_FLOAT_REF)),
        "has the type DT_FLOAT_REF",
    ),
    "a resource": (
        _index(entry(kind=types_pb2.DT_RESOURCE)),
        "has the type DT_RESOURCE",
    ),
    "a variant": (
        _index(entry(kind=types_pb2.DT_VARIANT)),
        "has the type DT_VARIANT",
    ),
    "a complex number": (
        _index(entry(kind=types_pb2.DT_COMPLEX64, size=8)),
        "has the type DT_COMPLEX64",
    ),
    "10**9 strings": (
        _index(entry((10**9,), types_pb2.DT_STRING)),
        "has 1,000,000,000 strings in 4 bytes",
    ),
    "10**18 strings": (
        _index(entry((10**18,), types_pb2.DT_STRING)),
        "strings in 4 bytes",
    ),
    "long strings": (
        functools.partial(_strings, b"\xff" * 9 + b"\x01" + bytes(15)),
        "bytes of strings in",
    ),
    "strings without an end": (
        functools.partial(_strings, b"\xff" * 64),
        "a number that does not end",
    ),
    "short data": (_index(entry((2,))), "4 bytes of DT_FLOAT"),
    "a negative offset": (_index(entry(offset=-8)), "ends at byte -4"),
    "a far offset": (_index(entry(offset=2**60)), "ends at byte 1152"),
    "tensors that overlap": (
        overlap,
        "the index lists tensors of 16 bytes; the data files have 8",
    ),
    "a negative length": (_index(entry(size=-4)), "ends at byte -4"),
    "data file 7": (_index(entry(shard_id=7)), "is in data file 7"),
    "data file -1": (_index(entry(shard_id=-1)), "is in data file -1"),
    "no data file": (_index(entry(), num_shards=2), "No such file"),
    "no shards": (_index(entry(), num_shards=0), "no known format"),
    "-1 shards": (_index(entry(), num_shards=-1), "no known format"),
    "10**9 shards": (_index(entry(), num_shards=10**9), "no known format"),
    "another byte order": (_index(entry(), endianness=1), "no known format"),
    "a slice of another rank": (
        _index(entry((2, 2), size=0, slices=[(0, 1)])),
        "has a slice outside of its shape",
    ),
    "a slice outside": (
        _index(entry((2,), size=0, slices=[(1, 2)])),
        "has a slice outside of its shape",
    ),
    "a negative slice": (
        _index(entry((2,), size=0, slices=[(-1, 2)])),
        "has a slice outside of its shape",
    ),
    "an overflow of slices": (
        _index(entry((2**40, 2**40), size=0, slices=[(0, 1), (0, 1)])),
        "more than memory holds",
    ),
    "no proto": (_index(b"\xff\xff\xff"), "other data than tensors"),
    "a header of text": (
        table(block([(0, b"", b"\xff\xff")], [0])),
        "other data than tensors",
    ),
    "a name that is not UTF-8": (_index(entry(), b"a\xff"), "no name in UTF-8"),
    "a name twice": (
        _plain((0, b"a", entry()), (0, b"a", entry())),
        "the keys of the index are not in order",
    ),
    "names in no order": (
        _plain((0, b"b", entry()), (0, b"a", entry())),
        "the keys of the index are not in order",
    ),
    "a shared start that is too long": (
        _plain((9, b"a", entry())),
        "an entry outside of its block",
    ),
    "a value outside": (
        # A value of nine bytes in a block that ends after eight.
        table(framed(b"\0\0\x09" + struct.pack("<2I", 0, 1) + b"\0")),
        "an entry outside of its block",
    ),
    "restarts outside": (
        _plain((0, b"a", entry()), restarts=(0, 999)),
        "has other restarts",
    ),
    "no restarts": (_plain((0, b"a", entry()), restarts=()), "no restarts"),
    "a block outside": (
        table(
            block([(0, b"", header())], [0]),
            block([(0, b"z", varint(2**40) + varint(9))], [0]),
        ),
        "a block outside of the index",
    ),
    "a block of 2**63 bytes": (
        table(
            block([(0, b"", header())], [0]),
            block([(0, b"z", varint(0) + varint(2**63))], [0]),
        ),
        "a block outside of the index",
    ),
    "a handle without an end": (
        table(
            block([(0, b"", header())], [0]),
            block([(0, b"z", b"\xff")], [0]),
        ),
        "a number that does not end",
    ),
    "another magic number": (
        table(block([(0, b"", header())], [0]), end=b"PK345678"),
        "not an index of a checkpoint",
    ),
    "cut": (_index(entry())[:-9], "not an index of a checkpoint"),
    "empty": (b"", "not an index of a checkpoint"),
    "another checksum": (
        _index(entry()).replace(NAME, NAME.upper()),
        "the checksum of a block",
    ),
    "compressed": (
        table(framed(block([(0, b"", header())], [0])[:-5] + b"\1")),
        "the index is compressed",
    ),
    "a pipe": (pipe, "is a pipe or device"),
    "data from a pipe": (_pipe_of_data, "is a pipe or device"),
    "a folder": (
        _folder,
        f"{PATH}: cannot be read or written: Is a directory; check",
    ),
}


def _layer(name: str, path: pathlib.Path) -> None:
    values = np.zeros(1, "f4").tobytes()
    path.with_suffix(".data-00000-of-00001").write_bytes(values)
    crc = checksums.masked_crc32c(values)
    path.write_bytes(_index(entry(crc32c=crc), name.encode()))


LAYERS = ("layer_x", "layer_", "layer_-1", "layer_99999999999999999999")


def cases() -> list[Case]:
    """All cases of this file."""
    found = [
        Case("index", name, PATH, content, message, RUNS)
        for name, (content, message) in INDEXES.items()
    ]
    found += [
        Case(
            "variable",
            name,
            PATH,
            functools.partial(_layer, f"bert/encoder/{name}/output/dense/bias"),
            "lacks",
            ("convert_google",),
        )
        for name in LAYERS
    ]
    return found
