"""Input records of run_pretraining.py."""

import dataclasses
import re
from typing import Self

from bert.common.errors import UserError
from bert.common.progress import log
from bert.data.pretraining.settings import InstanceSettings
from bert.data.records.manifest import Manifest
from bert.data.records.shards import Records, check_alike
from bert.data.text import vocabulary
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.config import BertConfig
from bert.modeling.formats.model_folder import ModelFolder
from bert.tasks.pretraining.settings import Settings

# Settings of the records that dynamic masking also uses.
_MASKING = (
    "do_whole_word_mask",
    "masked_lm_prob",
    "max_ngram",
    "max_predictions_per_seq",
    "word_boundaries",
)


@dataclasses.dataclass(frozen=True)
class PhaseInputs:
    """Training steps that read the same records.

    Attributes:
        records: Records. Training records.
        masks: InstanceSettings or None. Settings of dynamic masking.
        batch_size: int. Examples of a batch, over all devices.
        start_step: int. Number of steps before the phase.
        end_step: int. Last step of the phase.
    """

    records: Records
    masks: InstanceSettings | None
    batch_size: int
    start_step: int
    end_step: int


@dataclasses.dataclass(frozen=True)
class Inputs:
    """Records of a run, checked against each other and the network.

    Attributes:
        phases: list of PhaseInputs. Training data, in order.
        held_out: Records or None. Evaluation data.
        config: BertConfig. Sizes of the network.
        tokenizer: Tokenizer or None. Tokenizer of the records; None without a
            manifest.
    """

    phases: list[PhaseInputs]
    held_out: Records | None
    config: BertConfig
    tokenizer: Tokenizer | None

    @property
    def sets(self) -> list[Records]:
        """All records."""
        return _all(self.phases, self.held_out)

    @classmethod
    def open(cls, settings: Settings, model: ModelFolder) -> Self:
        """Opens the files that the flags name.

        Args:
            settings: Settings. Settings of the script.
            model: ModelFolder. Initial model, or only its config.

        Raises:
            UserError: the files contradict each other or the flags.
        """
        config, config_file = model.config, model.config_file
        if settings.vocab_size:
            config = dataclasses.replace(config, vocab_size=settings.vocab_size)

        # Records must only match lengths from the command line.
        names = ("max_seq_length", "max_predictions_per_seq")
        given = [name for name in names if name in settings.given]
        lengths = {name: getattr(settings, name) for name in given}
        flag = "phases" if settings.phases else "input_file"
        phases = []
        for files, *steps in read_phases(settings):
            records = Records.open(files, flag, lengths)
            masks = None
            if settings.dynamic_masking:
                masks = read_masks(records, settings.random_seed)
            phases.append(PhaseInputs(records, masks, *steps))
        held_out = None
        if settings.eval_input_file:
            held_out = Records.open(
                settings.eval_input_file, "eval_input_file", lengths
            )
        sets = _all(phases, held_out)
        tokenizer = check_sets(sets, config, config_file)
        return cls(phases, held_out, config, tokenizer)


def _all(phases: list[PhaseInputs], held_out: Records | None) -> list[Records]:
    return [*(x.records for x in phases), *([held_out] if held_out else [])]


def read_phases(settings: Settings) -> list[tuple[str, int, int, int]]:
    """Parses --phases or --input_file.

    Args:
        settings: Settings. Settings of the script.

    Returns:
        (file pattern, batch size, steps before it, its last step) of each
        phase, in order.

    Raises:
        UserError: --phases cannot be parsed.
    """
    batch_size = settings.train_batch_size
    parts: list[tuple[str, int, int]] = []
    if settings.input_file and not settings.phases:
        parts.append((settings.input_file, 1, batch_size))
    for part in settings.phases.split(",") if settings.phases else ():
        match = re.fullmatch(r"(.+?):([1-9]\d*)(?::([1-9]\d*))?", part)
        if match is None:
            raise UserError(
                f"--phases: {part!r}",
                expected="files:weight or files:weight:batch_size, as in "
                "'128/*.tfrecord*:90,512/*.tfrecord*:10'",
            )
        files, units, own_size = match.groups()
        parts.append((files, int(units), int(own_size or batch_size)))
    for _, _, size in parts:
        settings.check_micro_batches(size)

    # Rounded after summing, so that no step is lost.
    steps, total = settings.num_train_steps, sum(units for _, units, _ in parts)
    phases, passed, first = [], 0, 0
    for files, units, size in parts:
        passed += units
        last = steps * passed // total
        if last == first:
            raise UserError(
                f"--phases: 0 of {steps} steps for {files!r}",
                expected="at least one",
                fix="raise --num_train_steps or its weight",
            )
        phases.append((files, size, first, last))
        first = last
    return phases


def read_masks(records: Records, random_seed: int) -> InstanceSettings:
    """Settings of dynamic masking, from the manifests of the records.

    Args:
        records: Records. Training records.
        random_seed: int. Seed of the masks.

    Raises:
        UserError: records have no manifest, or their settings differ or need
            word boundaries, which the tokens do not contain.
    """
    for shard in records.shards:
        if shard.manifest is None:
            raise UserError(
                "is not in a manifest, which --dynamic_masking needs",
                path=shard.path,
                expected="records of create_pretraining_data.py",
            )
        if shard.manifest.word_boundaries:
            raise UserError(
                "--dynamic_masking does not support --word_boundaries",
                path=shard.path,
                fix="raise --dupe_factor of the records instead",
            )

    check_alike(
        [(shard.path, shard.settings) for shard in records.shards],
        _MASKING,
        "--dynamic_masking masks all records alike",
    )
    known = records.shards[0].settings
    return InstanceSettings(
        **{name: known[name] for name in _MASKING if name in known},
        random_seed=random_seed,
    )


def check_sets(
    sets: list[Records], config: BertConfig, config_file: str
) -> Tokenizer | None:
    """Checks records against each other and against the config.

    Args:
        sets: list of Records. All records of a run.
        config: BertConfig. Sizes of the network.
        config_file: str. File of the config, for messages.

    Returns:
        Tokenizer of the records; None without a manifest.

    Raises:
        UserError: the records contradict each other, or are too long or have
            too many tokens for the network.
    """
    for records in sets:
        config.check_length(
            records.max_seq_length, "max_seq_length", config_file
        )

    shards = [shard for records in sets for shard in records.shards]
    # All others are compared with the first, so it needs a manifest.
    shards.sort(key=lambda shard: shard.manifest is None)
    check_alike(
        [(x.path, {"pack_sequences": False, **x.settings}) for x in shards],
        ["pack_sequences", "vocab_sha256", "do_lower_case", "strip_accents"],
        "make all records with one vocabulary and casing, and all or none with "
        "--pack_sequences",
    )

    manifests = [shard.manifest for shard in shards if shard.manifest]
    if not manifests:
        return None
    check_config(manifests, config, config_file)
    return manifests[0].tokenizer()


def check_config(
    manifests: list[Manifest], config: BertConfig, config_file: str
) -> None:
    """Compares the vocabulary of records with a config.

    Warns of tokens that are never trained, and if many tokens are unknown.

    Args:
        manifests: list of Manifest. Manifests of the records.
        config: BertConfig. Sizes of the network.
        config_file: str. File of the config, for messages.

    Raises:
        UserError: the vocabulary is too large for the network.
    """
    size, tokens = config.vocab_size, manifests[0].vocab_size
    path = manifests[0].vocab_file
    if tokens > size:
        raise UserError(
            f"vocab_size is {size}",
            path=config_file,
            expected=f"at least {tokens}, the tokens of {path}",
        )
    if tokens < size and not vocabulary.is_padded(size, tokens):
        log(
            f"warning: {config_file}: vocab_size is {size}, {path} has "
            f"{tokens} tokens: the others are never trained; pass "
            f"--vocab_size={tokens}"
        )

    unknown = max(x.shares.get("unknown", 0) for x in manifests)
    if unknown > 0.01:
        log(
            f"warning: {unknown:.1%} of the tokens of the records are [UNK]; "
            "were they made with the vocabulary of their language and casing?"
        )
