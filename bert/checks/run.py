"""Checks of the files of a run, their consistency, and its curves."""

import math
import os
from collections.abc import Callable

import numpy as np
from scipy import stats

from bert.checks import model, records, vocabulary
from bert.checks.findings import Finding, fine, suspicious, wrong
from bert.checks.settings import Settings
from bert.common import storage
from bert.common.errors import UserError
from bert.common.formats import downloads
from bert.common.formats.curves import read_curves
from bert.common.progress import log
from bert.data.records.shards import check_alike
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.config import BertConfig
from bert.modeling.formats import checkpoint_files
from bert.modeling.formats.model_folder import ModelFolder
from bert.training import saver

CONFIG, CURVES = "bert_config.json", "metrics.jsonl"
_RECENT = 5  # number of points whose mean is the current loss
_SIZES = (
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "intermediate_size",
)


def examine(settings: Settings) -> list[Finding]:
    """Checks all given files, and their consistency.

    Raises:
        UserError: --input_file matches no file.
    """
    findings: list[Finding] = []

    def attempt(function: Callable, *arguments):
        """Calls a function and converts its UserError to a finding."""
        try:
            return function(*arguments)
        except UserError as error:
            findings.append(wrong(str(error)))

    # A run folder has both files; the flags have priority.
    folder = settings.output_dir
    checkpoint = settings.init_checkpoint
    if checkpoint:
        checkpoint = downloads.fetch(checkpoint)
    config_file = settings.bert_config_file or _find(folder, CONFIG)
    vocab_file = settings.vocab_file or _find(
        folder, checkpoint_files.VOCABULARY
    )

    # Config and tokenizer may be None from here on.
    config = tokenizer = None
    if config_file:
        config = attempt(BertConfig.from_json_file, config_file)
    if vocab_file:
        tokenizer = attempt(Tokenizer, vocab_file, None)
    if tokenizer:
        findings += vocabulary.check_file(tokenizer)

    # Records with different vocabularies use the same id for different tokens.
    scan = records.Scan()
    if settings.input_file:
        size = config.vocab_size if config else None
        scan = records.scan(settings.input_file, tokenizer, size)
        findings += scan.findings
        attempt(
            check_alike,
            [(x.path, x.settings) for x in scan.manifests],
            ["vocab_sha256", "do_lower_case", "strip_accents"],
            "make all records with one vocabulary and casing",
        )

    if config:
        sizes = ", ".join(f"{x} {getattr(config, x)}" for x in _SIZES)
        findings.append(fine(sizes, path=config_file))
        length = scan.max_seq_length
        attempt(config.check_length, length, "max_seq_length", config_file)

    # Records, checkpoint and network must use the same vocabulary.
    if tokenizer:
        findings += vocabulary.check_hash(tokenizer, scan.manifests)
    if tokenizer and checkpoint:
        attempt(
            lambda: ModelFolder.open(checkpoint).check_vocabulary(tokenizer)
        )
    if tokenizer := scan.tokenizer or tokenizer:  # the records have a casing
        size = config.vocab_size if config else None
        findings += vocabulary.check_use(tokenizer, size, config_file)

    # The newest undamaged checkpoint is examined, unless one is given.
    description = check_files(folder, findings) if folder else None
    if folder and description:
        newest = f"{saver.PREFIX}-{description.step}"
        checkpoint = checkpoint or os.path.join(folder, newest)

    if checkpoint:
        log(f"checking {checkpoint}")
        findings += model.examine(checkpoint, config)

    # Curves are last: the expected losses depend on config and records.
    curves = _find(folder, CURVES)
    points = attempt(read_curves, curves) if curves else None
    if curves and points is not None:
        run = description.settings if description else {}
        warmup = run.get("num_warmup_steps", 0)
        learned = learned_losses(config, scan, warmup)
        findings += check_curves(points, learned, curves)
    return findings


def learned_losses(
    config: BertConfig | None, scan: records.Scan, warmup: int
) -> dict[str, tuple[float, int]]:
    """Returns loss name -> (limit, step): healthy runs are below it by then.

    The masked-LM loss of a network that has learned only token frequencies is
    their entropy: 7.2 nats for English Wikipedia and 30,522 tokens, 0.7 times
    the loss of an untrained network.

    Args:
        config: BertConfig or None. Config of the network, if known.
        scan: records.Scan. Scan of the records.
        warmup: int. Number of warm-up steps.
    """
    # Guessing between two classes has a loss of ln 2 nats.
    limit = 0.985 * math.log(2)
    losses = {"next_sentence_loss": (limit, max(2000, 2 * warmup))}
    if config:
        frequencies = 0.7 * math.log(config.vocab_size)

        # With few tokens the entropy would be too low.
        if scan.targets is not None and scan.targets.sum() > 10_000:
            frequencies = stats.entropy(scan.targets)
        limit = 0.97 * frequencies
        losses["masked_lm_loss"] = (limit, max(1000, 2 * warmup))
    return losses


def check_curves(
    points: list[dict], learned: dict[str, tuple[float, int]], path: str
) -> list[Finding]:
    """Checks that losses are finite, and that a run learns.

    Args:
        points: list of dict. Result of `common.formats.curves.read_curves`.
        learned: dict. Result of `learned_losses`.
        path: str. File of the curves.
    """
    train = [point for point in points if point.get("kind") == "train"]
    if not train:
        return [suspicious("no point of the training curve", path=path)]

    # After a NaN all losses are meaningless, so the check ends.
    for point in points:
        for name, value in point.items():
            if isinstance(value, float) and not math.isfinite(value):
                return [
                    wrong(
                        f"{name} is {value} at step {point['step']}",
                        path=path,
                        fix="resume from an earlier checkpoint with a lower "
                        "--learning_rate",
                    )
                ]

    # A high loss is normal during the warm-up.
    findings, step, last = [], train[-1]["step"], []
    for name, (limit, first) in learned.items():
        recent = [x[name] for x in train[-_RECENT:] if name in x]
        if not recent:  # a resumed run may have other objectives
            continue
        loss = float(np.mean(recent))

        last.append(f", {name} {loss:.3f}")
        if step >= first and loss >= limit:
            findings.append(
                suspicious(
                    f"{name} is still {loss:.3f} at step {step}",
                    path=path,
                    expected=f"less than {limit:.3f} from step {first} on, as "
                    "in healthy runs",
                    fix="use a lower --learning_rate or a longer warm-up: Adam "
                    "without bias correction takes larger steps at first",
                )
            )
    return [*findings, fine(f"step {step}{''.join(last)}", path=path)]


def _find(folder: str | None, name: str) -> str | None:
    """Returns the path of a file in a folder, or None if it is missing."""
    path = os.path.join(folder, name) if folder else ""
    return path if storage.is_file(path) else None


def check_files(
    folder: str, findings: list[Finding]
) -> saver.Description | None:
    """Checks for damaged checkpoints.

    Args:
        folder: str. Output folder of the run; its best checkpoint is checked
            too.
        findings: list of Finding. Receives the findings.

    Returns:
        saver.Description or None. The newest undamaged checkpoint.
    """
    # In ascending order, so the newest description is kept.
    whole, description = [], None
    for step in saver.Saver(folder).saved_steps():
        path = os.path.join(folder, f"{saver.PREFIX}-{step}")
        try:
            description = saver.check_whole(path)
            whole.append(step)
        except saver.DAMAGE as error:
            findings.append(
                wrong(
                    f"damaged: {error}",
                    path=path,
                    fix="remove it: the run resumes from the one before",
                )
            )
    if whole:
        listed = ", ".join(map(str, whole))
        findings.append(fine(f"undamaged checkpoints: {listed}", path=folder))

    # The best checkpoint has its own folder, in the same format.
    best = os.path.join(folder, checkpoint_files.BEST)
    if storage.is_folder(best):
        check_files(best, findings)
    return description
