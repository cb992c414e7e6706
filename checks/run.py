"""What doctor.py says of a checkpoint, and of the folder of a run."""

import dataclasses
import fnmatch
import math
import os

from checks import records
from common import storage
from common.errors import UserError
from common.findings import Finding, fine, suspicious, wrong
from data.text import vocabulary_checks
from modeling.config import BertConfig
from tasks import output_dir
from tasks.pretraining import inputs

CONFIG, CURVES = "bert_config.json", "metrics.jsonl"


@dataclasses.dataclass(frozen=True)
class Job:
    """What is examined.

    Attributes:
        files: of records.
        vocab_file, config_file, checkpoint, folder: paths or None; what is
            not given is taken from the folder of the run.
        do_lower_case, strip_accents: None if they are not given.
    """

    files: list[str]
    vocab_file: str | None
    config_file: str | None
    checkpoint: str | None
    folder: str | None
    do_lower_case: bool | None
    strip_accents: bool | None


def read_config(path: str, found: list[Finding]) -> BertConfig | None:
    """Reads a config, or adds to what was found why it cannot be read."""
    try:
        return BertConfig.from_json_file(path)
    except UserError as error:
        found.append(wrong(str(error)))
        return None


def examine_checkpoint(
    prefix: str, config: BertConfig | None, config_file: str | None
) -> list[Finding]:
    """Looks at a checkpoint, and whether the config belongs to it."""
    from checks import model as checkpoint_checks
    from modeling import checkpoints, models

    shapes = None
    if config:
        model = models.build_pretraining_model(config, seed=0)
        shapes = {
            name: tuple(variable.shape)
            for name, variable in checkpoints.model_variables(model).items()
        }
    return checkpoint_checks.examine(prefix, config, config_file, shapes)


def examine_run(
    job: Job, config: BertConfig | None, scan: records.Scan
) -> list[Finding]:
    """Looks at the folder of a run: files, settings, curves."""
    from checks import curves as curve_checks
    from checks import run
    from training import saver

    found, description = run.check_files(job.folder)
    best = os.path.join(job.folder, output_dir.BEST)
    if os.path.isdir(best):
        found += run.check_files(best)[0]
    settings, where = description.get("settings", {}), job.folder
    if description:
        newest = os.path.join(
            job.folder, f"{saver.PREFIX}-{description['step']}"
        )
        where = f"{newest}.json"
        if not job.checkpoint:
            found += examine_checkpoint(newest, config, job.config_file)
    found += compare_run(job, config, scan, settings, where)
    curves = find(job.folder, CURVES)
    if not curves:
        return found
    try:
        points = curve_checks.read_curves(curves)
    except UserError as error:
        return [*found, wrong(str(error))]
    found += curve_checks.check_schedule(settings, points, where)
    return found + curve_checks.check(
        points,
        objectives(config, scan, settings.get("num_warmup_steps", 0)),
        curves,
        started_fresh=not settings.get("init_checkpoint"),
    )


def compare_run(
    job: Job,
    config: BertConfig | None,
    scan: records.Scan,
    settings: dict,
    where: str,
) -> list[Finding]:
    """Whether a run has the config and the records that were given."""
    found = []
    own = find(job.folder, CONFIG)
    if config and own and own != job.config_file:
        theirs = read_config(own, found)
        if theirs and theirs != config:
            found.append(
                wrong(
                    "is another config than the run's",
                    path=job.config_file,
                    expected=own,
                )
            )
    own = find(job.folder, output_dir.VOCABULARY)
    if own and own != job.vocab_file:
        more, vocab = vocabulary_checks.check_file(own)
        found += more
        if vocab:
            found += vocabulary_checks.check_hash(own, scan.runs)
    for name in ("do_lower_case", "strip_accents"):
        made = {run[name] for run in scan.runs}
        run_with = settings.get(name)
        if made and run_with is not None and made != {run_with}:
            found.append(
                wrong(
                    f"{name} of the run is {run_with}",
                    path=where,
                    expected=f"{not run_with}, as the records were made",
                )
            )
    files = trained_on(job.files, settings.get("input_file"))
    listed = dict(zip(job.files, scan.listed, strict=True))
    read = inputs.Records(files, [listed[x] for x in files], {})
    if files and settings.get("records") not in (None, fingerprint(read)):
        found.append(
            suspicious(
                "the run's records had the same names and other contents",
                path=storage.name_of(files),
                fix="a run that goes on should read what it began with",
            )
        )
    return found


def trained_on(files: list[str], patterns: str | None) -> list[str]:
    """Those files whose names a run's --input_file has."""
    names = [os.path.basename(x) for x in (patterns or "").split(",")]
    return [
        file
        for name in names
        for file in files
        if fnmatch.fnmatch(os.path.basename(file), name)
    ]


def fingerprint(read: inputs.Records) -> str:
    """The fingerprint of a run that reads these records."""
    phase = inputs.Phase(read, None, batch_size=0, first=0, last=0)
    return inputs.fingerprint(inputs.Inputs([phase], None, None, None, None))


def objectives(
    config: BertConfig | None, scan: records.Scan, warmup: int
) -> list:
    """What the losses of pre-training are like in healthy runs.

    A network that has learned how frequent pieces are, and nothing else, has
    the entropy of the pieces as its masked-LM loss: 7.2 nats for the 30,522
    of English Wikipedia, 0.7 of those of a fresh one.
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
    """A file of a folder, if it is there."""
    path = os.path.join(folder, name) if folder else ""
    return path if os.path.isfile(path) else None


def check_files(folder: str) -> tuple[list[Finding], dict]:
    """Looks for damaged checkpoints, and for what killed runs left.

    Args:
        folder: the run's output_dir.

    Returns:
        what was found, and the description of the newest whole checkpoint.
    """
    from training import saver

    found, whole, description = [], [], {}
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
                    fix="remove it: the run goes on from the one before",
                )
            )
    if whole:
        told = ", ".join(map(str, whole))
        found.append(fine(f"whole checkpoints: {told}", path=folder))
    described = {f"{saver.PREFIX}-{step}.index" for step in steps}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name.startswith(".partial") or name.endswith((".partial", "_temp")):
            found.append(
                suspicious(
                    "left by a run that was killed, or written just now",
                    path=path,
                    fix="remove it if no run is going on",
                )
            )
        elif (
            name.startswith(f"{saver.PREFIX}-")
            and name.endswith(".index")
            and name not in described
        ):
            found.append(
                wrong(
                    "has no description beside it",
                    path=path,
                    expected=name.removesuffix(".index") + ".json",
                    fix="this checkpoint is not whole: remove it",
                )
            )
    return found + _check_state(description, folder), description


def _check_state(description: dict, folder: str) -> list[Finding]:
    """Steps that gave nothing to learn from, at the newest checkpoint."""
    trainer = description.get("state", {}).get("trainer", {})
    bad = trainer.get("steps", {}).get("bad_steps", 0)
    if not bad:
        return []
    return [
        suspicious(
            f"the last {bad} steps before step {description['step']} gave no "
            "finite loss and gradient",
            path=folder,
            fix="look at the rows that the log names, or lower --learning_rate",
        )
    ]
