"""What is odd about a checkpoint: its names, its shapes, its numbers."""

import re

import numpy as np

from common import tensor_files
from common.errors import UserError
from common.findings import Finding, fine, suspicious, wrong
from modeling import checkpoints
from modeling.config import BertConfig

_MOMENTS = ("/adam_m", "/adam_v")
_STEP = "global_step"
_DAMAGED = "the checkpoint is damaged: copy it again"
_OTHER_CONFIG = "pass the bert_config.json that belongs to it"


def examine(
    prefix: str,
    config: BertConfig | None,
    config_file: str | None,
    expected: dict[str, tuple[int, ...]] | None,
) -> list[Finding]:
    """Reads a whole checkpoint, a tensor at a time.

    Args:
        prefix: of its files, or a folder that holds one.
        config: the network it is for; None if it is not known.
        config_file: its file, for messages.
        expected: original name -> shape of that network's variables.
    """
    found, shapes, step = [], {}, None
    try:
        path = checkpoints.resolve(prefix)
        for name, value in tensor_files.stream(path):
            value = np.asarray(value)  # a string comes as bytes
            shapes[name] = value.shape
            if name == _STEP:
                step = int(value)
            elif value.dtype.kind == "f":
                found += check_values(name, value, path)
    except UserError as error:
        return [wrong(str(error))]
    except ValueError as error:
        damage = wrong(f"cannot be read: {error}", path=path, fix=_DAMAGED)
        return [*found, damage]
    found += _check_optimizer(shapes, step, path)
    network = {
        name: shape
        for name, shape in shapes.items()
        if name != _STEP and not name.endswith(_MOMENTS)
    }
    if not any(name.startswith(checkpoints.ENCODER) for name in network):
        names = _list(sorted(network)) or "nothing"
        return [
            wrong(
                f"holds {names}",
                path=path,
                expected="a BERT, by the names of the original",
                fix="if it is one, see convert_checkpoint.py",
            )
        ]
    sizes = checkpoints.sizes_of(network)
    if config is not None:
        differing = _check_sizes(sizes, config, path, config_file)
        found += differing
        found += check_names(network, expected, path, bool(differing))
    told = ", ".join(f"{name} {size}" for name, size in sizes.items())
    return [*found, fine(f"{len(network)} variables; {told}", path=path)]


def check_names(
    shapes: dict[str, tuple[int, ...]],
    expected: dict[str, tuple[int, ...]],
    path: str,
    sizes_differ: bool,
) -> list[Finding]:
    """Compares names and shapes with the network's.

    Args:
        shapes: original name -> shape in the checkpoint.
        expected: the same, of the network.
        path: the checkpoint.
        sizes_differ: what differs in the encoder is explained already.
    """
    found = []
    missing = [name for name in expected if name not in shapes]
    lacking = [name for name in missing if name.startswith(checkpoints.ENCODER)]
    if lacking and not sizes_differ:
        found.append(
            wrong(f"lacks {_list(lacking)}", path=path, fix=_OTHER_CONFIG)
        )
    heads = [name for name in missing if name not in lacking]
    if heads:
        found.append(
            fine(f"has no {_list(heads)}: they would start fresh", path=path)
        )
    extra = sorted(set(shapes) - set(expected))
    unknown = [
        name
        for name in extra
        if not name.startswith(checkpoints.KNOWN)
        or (name.startswith(checkpoints.ENCODER) and not sizes_differ)
    ]
    if unknown:
        found.append(
            suspicious(
                f"holds {_list(unknown)}, which the network has not",
                path=path,
                fix=_OTHER_CONFIG,
            )
        )
    if not sizes_differ:
        found += [
            wrong(
                f"{name} is {list(shapes[name])}",
                path=path,
                expected=f"{list(shape)}, by the config",
                fix=_OTHER_CONFIG,
            )
            for name, shape in expected.items()
            if name in shapes and shapes[name] != shape
        ]
    return found


def check_values(name: str, value: np.ndarray, path: str) -> list[Finding]:
    """Judges the numbers of one variable.

    Args:
        name: in the checkpoint.
        value: float, any shape.
        path: the checkpoint.
    """
    bad = value.size - int(np.isfinite(value).sum())
    if bad:
        return [
            wrong(
                f"{name}: {bad:,} of {value.size:,} numbers are not finite",
                path=path,
                fix="start from a checkpoint before",
            )
        ]
    if name.endswith(_MOMENTS):
        if name.endswith(_MOMENTS[1]) and value.min(initial=0) < 0:
            return [
                wrong(
                    f"{name} has {value.min():.3g}",
                    path=path,
                    expected="0 or more",
                )
            ]
        return []
    if value.ndim == 2 and value.size > 1 and value.min() == value.max():
        return [
            wrong(
                f"{name} is {value.flat[0]:.3g} everywhere",
                path=path,
                fix="the checkpoint was never trained, or not written whole",
            )
        ]
    if name.endswith("/gamma") and not 0.2 < np.abs(value).mean() < 5:
        return [
            suspicious(
                f"{name} is {np.abs(value).mean():.3g} on average",
                path=path,
                expected="near 1",
            )
        ]
    return _check_embeddings(value, path) if name == checkpoints.WORDS else []


def _check_embeddings(table: np.ndarray, path: str) -> list[Finding]:
    """Tokens whose vectors have an odd length.

    Args:
        table: float [V, H].
        path: the checkpoint.
    """
    norms = np.linalg.norm(table, axis=1)
    usual = float(np.median(norms))
    found = []
    empty = np.flatnonzero(norms[1:] == 0) + 1  # [PAD] may be nothing
    if len(empty):
        found.append(
            suspicious(
                f"the vectors of {len(empty)} tokens are zero, of token "
                f"{empty[0]} first",
                path=path,
                fix="was the vocabulary made longer?",
            )
        )
    long = np.flatnonzero(norms > 20 * usual)
    if usual and len(long):
        found.append(
            suspicious(
                f"the vector of token {long[0]} is {norms[long[0]]:.3g} long",
                path=path,
                expected=f"about {usual:.3g}, the median",
            )
        )
    return found


def _check_optimizer(shapes: dict, step: int | None, path: str) -> list:
    """Whether what the optimizer keeps is there as a whole."""
    with_moments = {
        name.removesuffix(moment)
        for moment in _MOMENTS
        for name in shapes
        if name.endswith(moment)
    }
    found = []
    lacking = [
        name + moment
        for name in sorted(with_moments)
        for moment in _MOMENTS
        if name + moment not in shapes
    ]
    if with_moments:
        lacking += [
            name + _MOMENTS[0]
            for name in sorted(shapes)
            if name != _STEP
            and not name.endswith(_MOMENTS)
            and name not in with_moments
        ]
        found.append(fine(f"has Adam's moments, at step {step}", path=path))
    if lacking:
        found.append(suspicious(f"lacks {_list(lacking)}", path=path))
    named = re.search(r"-(\d+)$", path)
    if step is not None and named and int(named.group(1)) != step:
        found.append(
            suspicious(
                f"{_STEP} is {step}",
                path=path,
                expected=f"{named.group(1)}, as its name says",
            )
        )
    return found


def _check_sizes(sizes, config, path, config_file) -> list[Finding]:
    """A line for each size that differs: the table of both sides."""
    return [
        wrong(
            f"{name} is {size}",
            path=path,
            expected=f"{getattr(config, name)} ({config_file})",
            fix=_OTHER_CONFIG,
        )
        for name, size in sizes.items()
        if getattr(config, name) != size
    ]


def _list(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


_SIZES = (
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "intermediate_size",
)


def check_sizes(
    config: BertConfig, path: str, published: dict[str, BertConfig]
) -> list[Finding]:
    """Says which network it is.

    Args:
        config: that was read.
        path: its file.
        published: name -> config of the usual sizes.
    """
    names = [
        name
        for name, other in published.items()
        if all(getattr(config, x) == getattr(other, x) for x in _SIZES)
    ]
    sizes = ", ".join(f"{name} {getattr(config, name)}" for name in _SIZES)
    known = (
        f"as in {' and '.join(names)}" if names else "none of those in configs/"
    )
    return [fine(f"{sizes}: {known}", path=path)]


def check_length(
    config: BertConfig, path: str, max_seq_length: int | None, where: str
) -> list[Finding]:
    """Whether rows fit into the table of positions.

    Args:
        config: that was read.
        path: its file.
        max_seq_length: of the records; None if it is not known.
        where: the records, for messages.
    """
    if max_seq_length is None:
        return []
    if max_seq_length <= config.max_position_embeddings:
        return []
    return [
        wrong(
            f"max_position_embeddings is {config.max_position_embeddings}",
            path=path,
            expected=f"at least {max_seq_length}, the length of {where}",
            fix="make shorter records, or lengthen the table: "
            "convert_checkpoint.py --extend_positions",
        )
    ]
