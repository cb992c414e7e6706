"""Checks of the files of a run, of their consistency, and of its curves."""

import dataclasses
import fnmatch
import math
import os
import pathlib

from checks import records
from common import flags, storage
from common.errors import UserError
from common.findings import Finding, fine, suspicious, wrong
from common.flags import flag
from common.formats.curves import read_curves
from common.progress import say
from data.records import manifest
from data.records.records import Records, check_alike, fingerprint
from data.text import vocabulary_checks
from data.text.tokenizer import Tokenizer
from modeling.config import BertConfig
from modeling.formats.model_folder import ModelFolder
from tasks import run_folder

CONFIG, CURVES = "bert_config.json", "metrics.jsonl"


@dataclasses.dataclass(frozen=True)
class Settings:
    """Files to check; at least one."""

    input_file: str | None = flag(
        None,
        "Records to check: files and globs, separated by commas.",
        path=True,
    )
    vocab_file: str | None = flag(
        None, "Vocabulary, one token per line.", path=True
    )
    bert_config_file: str | None = flag(
        None, "JSON file with the sizes of the network.", path=True
    )
    init_checkpoint: str | None = flag(
        None, "Checkpoint: its prefix, such as bert_model.ckpt.", path=True
    )
    model: str | None = flag(
        None,
        "Folder of a SavedModel, which is examined without being loaded.",
        path=True,
    )
    output_dir: str | None = flag(
        None, "Folder of a run of run_pretraining.py.", path=True
    )
    do_lower_case: bool | None = flag(
        None, "Lower-casing of the other scripts; default: that of the records."
    )
    strip_accents: bool | None = flag(
        None,
        "Stripping of accents of the other scripts; default: as "
        "--do_lower_case, or as the records.",
    )

    @property
    def files(self) -> list[str]:
        """Paths of the records.

        Raises:
            UserError: --input_file matches none.
        """
        if not self.input_file:
            return []
        return manifest.list_shards(self.input_file, "input_file")

    def check(self) -> None:
        """Checks that there is a file to check.

        Raises:
            UserError: no file is given, or one is missing.
        """
        paths = flags.as_dict(self, "path")
        if not any(paths.values()):
            raise UserError(
                "no file to check", fix=f"pass one of --{', --'.join(paths)}"
            )
        for name in ("vocab_file", "bert_config_file"):
            path = paths[name]
            if path and not storage.is_file(storage.regular(path)):
                raise UserError(
                    "no such file", path=path, fix=f"check --{name}"
                )
        folder = self.output_dir
        if folder and not storage.is_folder(folder):
            raise UserError(
                "no such folder", path=folder, fix="check --output_dir"
            )

    def with_files_of_run(self) -> "Settings":
        """These settings, with unset paths taken from the run's folder."""
        folder = self.output_dir
        return dataclasses.replace(
            self,
            vocab_file=self.vocab_file or find(folder, run_folder.VOCABULARY),
            bert_config_file=self.bert_config_file or find(folder, CONFIG),
        )


def examine(settings: Settings) -> list[Finding]:
    """Checks all given files, and their consistency.

    Args:
        settings: settings of the command line.

    Raises:
        UserError: --input_file matches no file.
    """
    settings, files = settings.with_files_of_run(), settings.files
    found, config, tokenizer, scan = [], None, None, records.Scan()
    config_file, vocab_file = settings.bert_config_file, settings.vocab_file
    if config_file:
        config = read_config(config_file, found)
    if config:
        from checks import model  # imports TensorFlow, which takes seconds

        found += model.check_sizes(config, config_file, published())
    if vocab_file:
        tokenizer = read_vocabulary(
            vocab_file, found, settings.do_lower_case, settings.strip_accents
        )
    if files:
        size = config.vocab_size if config else None
        scan = records.scan(files, tokenizer, size)
        found += scan.findings
    found += _check_text(settings, config, tokenizer, scan)
    if config:
        found += model.check_length(
            config, config_file, scan.max_seq_length, "the records"
        )
    if settings.init_checkpoint:
        found += examine_checkpoint(
            settings.init_checkpoint, config, config_file
        )
    if settings.model:
        from checks import saved_model_scan

        found += saved_model_scan.examine(settings.model)
    if settings.output_dir:
        found += examine_run(settings, config, scan)
    return found


def _check_text(
    settings: Settings,
    config: BertConfig | None,
    tokenizer: Tokenizer | None,
    scan: records.Scan,
) -> list[Finding]:
    """Checks that vocabulary, casing, records and checkpoint agree."""
    found = []
    if tokenizer:
        found += vocabulary_checks.check_hash(tokenizer, scan.runs)
    if tokenizer and settings.init_checkpoint:
        try:
            model = ModelFolder.open(settings.init_checkpoint)
            model.check_vocabulary(tokenizer)
        except UserError as error:
            found.append(wrong(str(error)))
    made = scan.runs[0] if scan.runs else {}
    try:
        check_alike(
            [(run["manifest"], run) for run in scan.runs],
            ["vocab_sha256", "do_lower_case", "strip_accents"],
            "make all records with one vocabulary and casing",
        )
    except UserError as error:
        found.append(wrong(str(error)))
    for name in ("do_lower_case", "strip_accents"):
        given = getattr(settings, name)
        if made and given not in (None, made[name]):
            found.append(
                wrong(
                    f"--{name}={given}",
                    expected=f"{not given}, as for the records",
                )
            )
    if scan.tokenizer or tokenizer:  # that of the records has their casing
        found += vocabulary_checks.check_use(
            scan.tokenizer or tokenizer,
            config.vocab_size if config else None,
            settings.bert_config_file,
        )
    return found


def read_vocabulary(
    path: str,
    found: list[Finding],
    do_lower_case: bool | None = None,
    strip_accents: bool | None = None,
) -> Tokenizer | None:
    """Examines a vocabulary; returns None if it cannot be read."""
    try:
        tokenizer = Tokenizer(path, do_lower_case, strip_accents)
    except UserError as error:
        found.append(wrong(str(error)))
        return None
    found += vocabulary_checks.check_file(tokenizer)
    return tokenizer


def published() -> dict[str, BertConfig]:
    """Configs of the folder configs/, by name."""
    configs = pathlib.Path(__file__).parents[1] / "configs"
    return {
        path.stem: BertConfig.from_json_file(str(path))
        for path in sorted(configs.glob("*.json"))
    }


def read_config(path: str, found: list[Finding]) -> BertConfig | None:
    """Reads a config; adds a finding and returns None if that fails."""
    try:
        return BertConfig.from_json_file(path)
    except UserError as error:
        found.append(wrong(str(error)))
        return None


def examine_checkpoint(
    prefix: str, config: BertConfig | None, config_file: str | None
) -> list[Finding]:
    """Checks a checkpoint, and compares it with the config."""
    say(f"checking {prefix}")
    from checks import model as model_checks
    from modeling import checkpoints, models

    shapes = None
    if config:
        model = models.build_pretraining_model(config, seed=0)
        shapes = {
            name: tuple(variable.shape)
            for name, variable in checkpoints.model_variables(model).items()
        }
    return model_checks.examine(prefix, config, config_file, shapes)


def examine_run(
    settings: Settings, config: BertConfig | None, scan: records.Scan
) -> list[Finding]:
    """Checks the folder of a run: files, settings, curves."""
    from checks import curves as curve_checks
    from training import saver

    folder = where = settings.output_dir
    found, description = check_files(folder)
    best = os.path.join(folder, run_folder.BEST)
    if storage.is_folder(best):
        found += check_files(best)[0]
    made_with = description.settings if description else {}
    if description:
        newest = os.path.join(folder, f"{saver.PREFIX}-{description.step}")
        where = f"{newest}.json"
        if not settings.init_checkpoint:
            found += examine_checkpoint(
                newest, config, settings.bert_config_file
            )
    found += compare_run(settings, config, scan, made_with, where)
    curves = find(folder, CURVES)
    if not curves:
        return found
    try:
        points = read_curves(curves)
    except UserError as error:
        return [*found, wrong(str(error))]
    found += curve_checks.check_schedule(made_with, points, where)
    return found + curve_checks.check(
        points,
        objectives(config, scan, made_with.get("num_warmup_steps", 0)),
        curves,
        started_fresh=not made_with.get("init_checkpoint"),
    )


def compare_run(
    settings: Settings,
    config: BertConfig | None,
    scan: records.Scan,
    made_with: dict,
    where: str,
) -> list[Finding]:
    """Compares a run with the given config and records.

    Args:
        settings: settings of the command line.
        config: config in `settings.bert_config_file`, if known.
        scan: scan of the records.
        made_with: settings of the run.
        where: file of these settings, for messages.
    """
    found = []
    own = find(settings.output_dir, CONFIG)
    if config and own and own != settings.bert_config_file:
        theirs = read_config(own, found)
        if theirs and theirs != config:
            found.append(
                wrong(
                    "differs from the config of the run",
                    path=settings.bert_config_file,
                    expected=own,
                )
            )
    own = find(settings.output_dir, run_folder.VOCABULARY)
    if own and own != settings.vocab_file:
        tokenizer = read_vocabulary(own, found)
        if tokenizer:
            found += vocabulary_checks.check_hash(tokenizer, scan.runs)
    for name in ("do_lower_case", "strip_accents"):
        made = {run[name] for run in scan.runs}
        run_with = made_with.get(name)
        if made and run_with is not None and made != {run_with}:
            found.append(
                wrong(
                    f"{name} of the run is {run_with}",
                    path=where,
                    expected=f"{not run_with}, as for the records",
                )
            )
    files = trained_on(scan.files, made_with.get("input_file"))
    listed = dict(zip(scan.files, scan.listed, strict=True))
    read = Records(files, [listed[x] for x in files], {})
    if files and made_with.get("records") not in (None, fingerprint([read])):
        found.append(
            suspicious(
                "the run was trained on other records with these names",
                path=storage.name_of(files),
                fix="resume a run with the records that it started with",
            )
        )
    return found


def trained_on(files: list[str], patterns: str | None) -> list[str]:
    """Files whose names match --input_file of a run."""
    names = [os.path.basename(x) for x in (patterns or "").split(",")]
    found = [
        file
        for name in names
        for file in files
        if fnmatch.fnmatch(os.path.basename(file), name)
    ]
    return [*dict.fromkeys(found)]  # several patterns may match a file


def objectives(
    config: BertConfig | None, scan: records.Scan, warmup: int
) -> list:
    """Losses of pre-training in healthy runs.

    The masked-LM loss of a network that has learned only token frequencies is
    their entropy: 7.2 nats for English Wikipedia and 30,522 tokens, 0.7 times
    the loss of a fresh network.
    """
    from checks.curves import Objective

    found = []
    if config:
        fresh = math.log(config.vocab_size)
        frequencies = 0.7 * fresh
        if scan.statistics and scan.statistics.targets.sum() > 10_000:
            frequencies = records.unigram_loss(scan.statistics)
        found.append(
            Objective(
                "masked_lm", fresh, 0.97 * frequencies, max(1000, 2 * warmup)
            )
        )
    pair = math.log(2)
    found.append(
        Objective("next_sentence", pair, 0.985 * pair, max(2000, 2 * warmup))
    )
    return found


def find(folder: str | None, name: str) -> str | None:
    """Path of a file in a folder, or None if it does not exist."""
    path = os.path.join(folder, name) if folder else ""
    return path if storage.is_file(path) else None


def check_files(folder: str) -> tuple:
    """Checks for damaged checkpoints, and for files of killed runs.

    Args:
        folder: output_dir of the run.

    Returns:
        list of Findings; description of the newest whole checkpoint, or None.
    """
    from training import saver

    found, whole, description = [], [], None
    steps = saver.Saver(folder).steps()
    for step in steps:
        path = os.path.join(folder, f"{saver.PREFIX}-{step}")
        try:
            description = saver.check_whole(path)
            whole.append(step)
        except saver.DAMAGE as error:
            found.append(
                wrong(
                    f"damaged: {error}",
                    path=path,
                    fix="remove it: the run resumes from the one before",
                )
            )
    if whole:
        listed = ", ".join(map(str, whole))
        found.append(fine(f"whole checkpoints: {listed}", path=folder))
    described = {f"{saver.PREFIX}-{step}.index" for step in steps}
    for name in sorted(storage.list_folder(folder)):
        path = os.path.join(folder, name)
        if name.startswith(".partial") or name.endswith((".partial", "_temp")):
            found.append(
                suspicious(
                    "left by a killed run, or being written now",
                    path=path,
                    fix="remove it if no run is active",
                )
            )
        elif (
            name.startswith(f"{saver.PREFIX}-")
            and name.endswith(".index")
            and name not in described
        ):
            found.append(
                wrong(
                    "has no description",
                    path=path,
                    expected=name.removesuffix(".index") + ".json",
                    fix="the checkpoint is incomplete: remove it",
                )
            )
    if description:
        found += _check_state(description.state, description.step, folder)
    return found, description


def _check_state(state: dict, step: int, folder: str) -> list[Finding]:
    """Checks for steps without finite values before the newest checkpoint."""
    trainer = state.get("trainer", {})
    bad = trainer.get("steps", {}).get("bad_steps", 0)
    if not bad:
        return []
    return [
        suspicious(
            f"the last {bad} steps before step {step} had no "
            "finite loss and gradient",
            path=folder,
            fix="check the examples named in the log, or lower --learning_rate",
        )
    ]
