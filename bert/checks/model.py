"""Checks of a checkpoint: its names, shapes and values."""

import numpy as np
from numpy.typing import NDArray

from bert.checks.findings import Finding, fine, suspicious, wrong
from bert.common import storage
from bert.common.errors import UserError
from bert.modeling import checkpoints, networks
from bert.modeling.checkpoints import first_of
from bert.modeling.config import BertConfig
from bert.modeling.formats import checkpoint_files, sentence_files
from bert.modeling.task_heads import head_of


def examine(prefix: str, config: BertConfig | None) -> list[Finding]:
    """Checks the network's variables in a checkpoint.

    Args:
        prefix: str. Prefix of its files, or a folder with one checkpoint.
        config: BertConfig or None. Config of its network, if known.
    """
    path = prefix
    try:
        path = checkpoint_files.resolve(prefix)
        values = checkpoints.read(path)
    except (UserError, OSError) as error:
        return [wrong(str(storage.as_user_error(error) or error))]
    except ValueError as error:
        fix = "the checkpoint is damaged: copy it again"
        return [wrong(f"cannot be read: {error}", path=path, fix=fix)]

    values = {name: np.asarray(x) for name, x in values.items()}
    if not any(name.startswith(checkpoints.ENCODER) for name in values):
        return [
            wrong(
                f"contains {first_of(sorted(values)) or 'nothing'}",
                path=path,
                expected="variables of BERT with the original names",
                fix="convert other formats with convert_checkpoint.py",
            )
        ]

    findings = []
    for name, value in values.items():
        findings += check_values(name, value, path)
    if config:
        findings += _compare(values, config, path)

    findings += _labels(values, path)

    # A report without errors still lists the examined variables.
    sizes = checkpoints.sizes_of({k: x.shape for k, x in values.items()})
    listed = ", ".join(f"{name} {size}" for name, size in sizes.items())
    return [*findings, fine(f"{len(values)} variables; {listed}", path=path)]


def check_values(name: str, value: NDArray, path: str) -> list[Finding]:
    """Checks the values of one variable.

    Args:
        name: str. Name in the checkpoint.
        value: array of any shape and type.
        path: str. The checkpoint, for the message.
    """
    if value.dtype.kind != "f":
        return []

    # A run that starts from NaN does not recover.
    bad = value.size - int(np.isfinite(value).sum())
    if bad:
        return [
            wrong(
                f"{name}: {bad:,} of {value.size:,} values are not finite",
                path=path,
                fix="start from an earlier checkpoint",
            )
        ]

    # A vector may be constant: initially beta is 0 and gamma is 1.
    if value.ndim == 2 and value.size > 1 and value.min() == value.max():
        return [
            wrong(
                f"{name} is {value.flat[0]:.3g} everywhere",
                path=path,
                fix="the checkpoint is untrained, or was not fully written",
            )
        ]
    return []


def _compare(
    values: dict[str, NDArray], config: BertConfig, path: str
) -> list[Finding]:
    """Compares names and shapes with the variables of the network."""
    try:
        # Only names and shapes are compared, so any seed will do.
        shapes = {name: x.shape for name, x in values.items()}
        checkpoints.check_sizes(config, shapes, path)
        network = networks.build_pretraining_model(config, seed=0)
        named = checkpoints.model_variables(network)
        fresh = checkpoints.assign(named, values, path)
    except UserError as error:
        return [wrong(str(error))]

    # A fine-tuned model has another head than the pre-trained one.
    findings = []
    if fresh and not _is_tuned(values, path):
        findings.append(
            fine(
                f"lacks {first_of(fresh)}, which would be initialized randomly",
                path=path,
            )
        )

    # Task heads are allowed; variables of the encoder must be in the network.
    heads = tuple(set(checkpoints.KNOWN) - set(checkpoints.ENCODER))
    unknown = [
        name
        for name in sorted(values.keys() - named.keys())
        if not name.startswith(heads)
    ]
    if unknown:
        findings.append(
            suspicious(
                f"unexpected variables {first_of(unknown)}",
                path=path,
                fix="pass the bert_config.json that belongs to it",
            )
        )
    return findings


def _is_tuned(values: dict[str, NDArray], path: str) -> bool:
    """Returns whether a checkpoint has a fine-tuned model."""
    modules = checkpoint_files.beside(path, sentence_files.MODULES)
    return storage.is_file(modules) or head_of(values) is not None


def _labels(values: dict[str, NDArray], path: str) -> list[Finding]:
    """Compares the labels of a fine-tuned model with its outputs."""
    try:
        task = checkpoint_files.task_of(path)
    except UserError as error:
        return [wrong(str(error))]
    if not task or not task["labels"]:
        return []

    where = checkpoint_files.beside(path, checkpoint_files.TASK)
    count, listed = len(task["labels"]), first_of(task["labels"])
    outputs = {
        len(values[f"{scope}output_weights"])
        for scope in ("", "cls/ner/")
        if f"{scope}output_weights" in values
    }
    if outputs - {count}:
        return [
            wrong(
                f"{count} labels: {listed}",
                path=where,
                expected=f"{outputs.pop()}, one for each output of {path}",
                fix="copy the model again",
            )
        ]
    return [fine(f"{count} labels: {listed}", path=where)]
