"""Checks of the files of a run, of their consistency, and of its curves."""

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
from bert.common.formats import published
from bert.common.formats.curves import read_curves
from bert.common.progress import say
from bert.data.records.shards import check_alike
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.config import BertConfig
from bert.modeling.formats import checkpoint_files
from bert.modeling.formats.model_folder import ModelFolder
from bert.training import saver

CONFIG, CURVES = "bert_config.json", "metrics.jsonl"
_RECENT = 5  # points whose mean is the present loss
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
        """Calls a function; its error is a finding."""
        try:
            return function(*arguments)
        except UserError as error:
            findings.append(wrong(str(error)))

    # The folder of a run has both files; flags come first.
    folder = settings.output_dir
    checkpoint = published.fetch(settings.init_checkpoint)
    config_file = settings.bert_config_file or _find(folder, CONFIG)
    vocab_file = settings.vocab_file or _find(
        folder, checkpoint_files.VOCABULARY
    )

    # Each may be None from here on: what can be checked is checked.
    config = tokenizer = None
    if config_file:
        config = attempt(BertConfig.from_json_file, config_file)
    if vocab_file:
        tokenizer = attempt(Tokenizer, vocab_file, None)
    if tokenizer:
        findings += vocabulary.check_file(tokenizer)

    # With two vocabularies, an id would mean two tokens.
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

    # Records, checkpoint and network: all must mean the same tokens.
    if tokenizer:
        findings += vocabulary.check_hash(tokenizer, scan.manifests)
    if tokenizer and checkpoint:
        attempt(
            lambda: ModelFolder.open(checkpoint).check_vocabulary(tokenizer)
        )
    if tokenizer := scan.tokenizer or tokenizer:  # the former has a casing
        size = config.vocab_size if config else None
        findings += vocabulary.check_use(tokenizer, size, config_file)

    # The newest whole checkpoint is examined, unless one is given.
    description = folder and check_files(folder, findings)
    if description:
        newest = f"{saver.PREFIX}-{description.step}"
        checkpoint = checkpoint or os.path.join(folder, newest)

    if checkpoint:
        say(f"checking {checkpoint}")
        findings += model.examine(checkpoint, config)

    # Last: which loss is healthy depends on all of the above.
    curves = _find(folder, CURVES)
    points = attempt(read_curves, curves) if curves else None
    if points is not None:
        run = description.settings if description else {}
        warmup = run.get("num_warmup_steps", 0)
        learned = learned_losses(config, scan, warmup)
        findings += check_curves(points, learned, curves)
    return findings


def learned_losses(
    config: BertConfig | None, scan: records.Scan, warmup: int
) -> dict[str, tuple[float, int]]:
    """Losses that a healthy run falls below, and by which step.

    The masked-LM loss of a network that has learned only token frequencies is
    their entropy: 7.2 nats for English Wikipedia and 30,522 tokens, 0.7 times
    the loss of a fresh network.
    """
    # A guess between two answers costs ln 2 nats.
    limit = 0.985 * math.log(2)
    losses = {"next_sentence_loss": (limit, max(2000, 2 * warmup))}
    if config:
        frequencies = 0.7 * math.log(config.vocab_size)

        # Few tokens would make the entropy too low.
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
        points: from `common.formats.curves.read_curves`.
        learned: from `learned_losses`.
        path: file of the curves.
    """
    train = [point for point in points if point.get("kind") == "train"]
    if not train:
        return [suspicious("no point of the training curve", path=path)]

    # After a NaN no loss means anything, so this ends the check.
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

    # While a run warms up, a high loss is no fault.
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
    """Path of a file in a folder, or None if it does not exist."""
    path = os.path.join(folder, name) if folder else ""
    return path if storage.is_file(path) else None


def check_files(
    folder: str, findings: list[Finding]
) -> saver.Description | None:
    """Checks for damaged checkpoints.

    Args:
        folder: output_dir of the run; its best checkpoint is checked too.
        findings: receives the findings.

    Returns:
        description of the newest whole checkpoint, or None.
    """
    # Ascending: the description that is kept is the newest.
    whole, description = [], None
    for step in saver.Saver(folder).steps():
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
        findings.append(fine(f"whole checkpoints: {listed}", path=folder))

    # The best checkpoint lies in a folder of its own, in the same form.
    best = os.path.join(folder, checkpoint_files.BEST)
    if storage.is_folder(best):
        check_files(best, findings)
    return description
