"""Checks of a config and of a checkpoint's names, shapes and values."""

import re

import numpy as np

from checks import checkpoint_index
from common import storage, tensor_files
from common.errors import UserError
from common.findings import Finding, fine, suspicious, wrong
from modeling import checkpoints
from modeling.checkpoints import first_of
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
    """Checks a whole checkpoint, one tensor at a time.

    Args:
        prefix: prefix of its files, or a folder with one checkpoint.
        config: config of its network; None if unknown.
        config_file: file of the config, for messages.
        expected: original name -> shape of the network's variables; None if
            the config is unknown.
    """
    found, shapes, step = [], {}, None
    try:
        path = checkpoints.resolve(prefix)
        checkpoint_index.check(path)  # TensorFlow would end the process
        for name, value in tensor_files.stream(path):
            value = np.asarray(value)  # a string is read as bytes
            shapes[name] = value.shape
            if name == _STEP:
                step = int(value)
            elif value.dtype.kind == "f":
                found += check_values(name, value, path)
    except (UserError, OSError) as error:
        error = storage.as_user_error(error) or error
        return [*found, wrong(str(error))]
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
        names = first_of(sorted(network)) or "nothing"
        return [
            wrong(
                f"contains {names}",
                path=path,
                expected="variables of BERT with the original names",
                fix="convert other formats with convert_checkpoint.py",
            )
        ]
    sizes = checkpoints.sizes_of(network)
    if config is not None:
        differing = _check_sizes(sizes, config, path, config_file)
        found += differing
        found += check_names(network, expected, path, bool(differing))
    listed = ", ".join(f"{name} {size}" for name, size in sizes.items())
    return [*found, fine(f"{len(network)} variables; {listed}", path=path)]


def check_names(
    shapes: dict[str, tuple[int, ...]],
    expected: dict[str, tuple[int, ...]],
    path: str,
    sizes_differ: bool,
) -> list[Finding]:
    """Compares names and shapes with those of the network.

    Args:
        shapes: original name -> shape in the checkpoint.
        expected: original name -> shape in the network.
        path: the checkpoint.
        sizes_differ: whether differences in the encoder are reported already.
    """
    found = []
    missing = [name for name in expected if name not in shapes]
    lacking = [name for name in missing if name.startswith(checkpoints.ENCODER)]
    if lacking and not sizes_differ:
        found.append(
            wrong(f"lacks {first_of(lacking)}", path=path, fix=_OTHER_CONFIG)
        )
    heads = [name for name in missing if name not in lacking]
    if heads:
        found.append(
            fine(
                f"lacks {first_of(heads)}, which would be initialized randomly",
                path=path,
            )
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
                f"unexpected variables {first_of(unknown)}",
                path=path,
                fix=_OTHER_CONFIG,
            )
        )
    if not sizes_differ:
        found += [
            wrong(
                f"{name} has shape {list(shapes[name])}",
                path=path,
                expected=f"{list(shape)}, as in the config",
                fix=_OTHER_CONFIG,
            )
            for name, shape in expected.items()
            if name in shapes and shapes[name] != shape
        ]
    return found


def check_values(name: str, value: np.ndarray, path: str) -> list[Finding]:
    """Checks the values of one variable.

    Args:
        name: its name in the checkpoint.
        value: float array of any shape.
        path: the checkpoint.
    """
    bad = value.size - int(np.isfinite(value).sum())
    if bad:
        return [
            wrong(
                f"{name}: {bad:,} of {value.size:,} values are not finite",
                path=path,
                fix="start from an earlier checkpoint",
            )
        ]
    if name.endswith(_MOMENTS):
        if name.endswith(_MOMENTS[1]) and value.min(initial=0) < 0:
            return [
                wrong(
                    f"{name} has the value {value.min():.3g}",
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
                fix="the checkpoint is untrained, or was not fully written",
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
    """Checks for embeddings of unusual length.

    Args:
        table: float [V, H].
        path: the checkpoint.
    """
    norms = np.linalg.norm(table, axis=1)
    usual = float(np.median(norms))
    found = []
    empty = np.flatnonzero(norms[1:] == 0) + 1  # [PAD] may be zero
    if len(empty):
        found.append(
            suspicious(
                f"the embeddings of {len(empty)} tokens are zero, the first is "
                f"token {empty[0]}",
                path=path,
                fix="was the vocabulary extended?",
            )
        )
    long = np.flatnonzero(norms > 20 * usual)
    if usual and len(long):
        found.append(
            suspicious(
                f"the embedding of token {long[0]} has the length "
                f"{norms[long[0]]:.3g}",
                path=path,
                expected=f"about {usual:.3g}, the median",
            )
        )
    return found


def _check_optimizer(shapes: dict, step: int | None, path: str) -> list:
    """Checks that the optimizer's variables are complete."""
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
    # Heads of next sentences are not trained in every run.
    untrained = tuple(
        scope
        for scope in ("bert/pooler/", "cls/seq_relationship/")
        if not any(name.startswith(scope) for name in with_moments)
    )
    if with_moments:
        lacking += [
            name + _MOMENTS[0]
            for name in sorted(shapes)
            if name != _STEP
            and not name.endswith(_MOMENTS)
            and not name.startswith(untrained)
            and name not in with_moments
        ]
        found.append(fine(f"has Adam's moments at step {step}", path=path))
    if lacking:
        found.append(suspicious(f"lacks {first_of(lacking)}", path=path))
    named = re.search(r"-(\d+)$", path)
    if step is not None and named and int(named.group(1)) != step:
        found.append(
            suspicious(
                f"{_STEP} is {step}",
                path=path,
                expected=f"{named.group(1)}, as in its name",
            )
        )
    return found


def _check_sizes(sizes, config, path, config_file) -> list[Finding]:
    """Reports each size that differs."""
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


_SIZES = (
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "intermediate_size",
)


def check_sizes(
    config: BertConfig, path: str, published: dict[str, BertConfig]
) -> list[Finding]:
    """Reports the sizes of a network, and which published config has them.

    Args:
        config: the config.
        path: its file.
        published: name -> config in `configs/`.
    """
    names = [
        name
        for name, other in published.items()
        if all(getattr(config, x) == getattr(other, x) for x in _SIZES)
    ]
    sizes = ", ".join(f"{name} {getattr(config, name)}" for name in _SIZES)
    known = f"as in {' and '.join(names)}" if names else "not in configs/"
    return [fine(f"{sizes}: {known}", path=path)]


def check_length(
    config: BertConfig, path: str, max_seq_length: int | None, where: str
) -> list[Finding]:
    """Checks that the position embeddings cover the sequences.

    Args:
        config: the config.
        path: its file.
        max_seq_length: S of the records; None if unknown.
        where: name of the records, for messages.
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
            fix="create shorter records, or extend the position embeddings "
            "with convert_checkpoint.py --extend_positions",
        )
    ]
