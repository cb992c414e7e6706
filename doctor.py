r"""Records, vocabulary, config, checkpoint, run -> what is wrong with them.

    python doctor.py --input_file='records/*.tfrecord*' --vocab_file=vocab.txt \
        --bert_config_file=config.json --init_checkpoint=bert_model.ckpt \
        --output_dir=run

Any of the flags may be left out. A line a finding: what is wrong would stop
or spoil a run; what is suspicious is not seen in healthy ones. The exit code
is 1 if something is wrong, 2 if the command line is. Nothing is written.
"""

import glob
import os
import sys

from absl import flags

from checks import model as config_checks
from checks import records, run
from checks.run import Job
from common import findings as report
from common.errors import UserError
from common.findings import Finding, wrong
from data.text import vocabulary_checks
from modeling.config import BertConfig
from tasks import common_flags, output_dir, text_flags

_PATHS = {
    "input_file": "Records to examine: files and globs, with commas.",
    "vocab_file": "Vocabulary, one token a line.",
    "bert_config_file": "JSON file with the sizes of the network.",
    "init_checkpoint": "Checkpoint: its prefix, such as bert_model.ckpt.",
    "output_dir": "Folder of a run of run_pretraining.py.",
}


def define_flags(values: flags.FlagValues) -> None:
    """Defines this script's flags; none is required, one is needed."""
    for name, meaning in _PATHS.items():
        flags.DEFINE_string(name, None, meaning, flag_values=values)
    text_flags.define_case(
        values,
        None,
        "How the other scripts lower-case text; else as the records say.",
    )


def read_flags(argv: list[str]) -> Job:
    """Reads and checks the command line."""
    values = common_flags.parse(argv, define_flags, __doc__)
    if not any(values[name].value for name in _PATHS):
        raise UserError(
            "nothing to examine",
            fix=f"pass one of --{', --'.join(_PATHS)}",
        )
    for name in ("vocab_file", "bert_config_file"):
        path = values[name].value
        if path and not os.path.isfile(path):
            raise UserError("no such file", path=path, fix=f"check --{name}")
    folder = values.output_dir
    if folder and not os.path.isdir(folder):
        raise UserError("no such folder", path=folder, fix="check --output_dir")
    files = []
    if values.input_file:
        files = common_flags.list_files(values.input_file, "input_file")
    return Job(
        files=files,
        vocab_file=values.vocab_file or run.find(folder, output_dir.VOCABULARY),
        config_file=values.bert_config_file or run.find(folder, run.CONFIG),
        checkpoint=values.init_checkpoint,
        folder=folder,
        do_lower_case=values.do_lower_case,
        strip_accents=values.strip_accents,
    )


def examine(job: Job) -> list[Finding]:
    """Looks at everything that was given, alone and together."""
    found, config, vocab, scan = [], None, None, records.Scan()
    if job.config_file:
        config = run.read_config(job.config_file, found)
    if config:
        found += config_checks.check_sizes(config, job.config_file, published())
    if job.vocab_file:
        more, vocab = vocabulary_checks.check_file(job.vocab_file)
        found += more
    if job.files:
        size = config.vocab_size if config else None
        scan = records.scan(job.files, vocab, size)
        found += scan.findings
    if vocab:
        found += vocabulary_checks.check_hash(job.vocab_file, scan.runs)
    if vocab and job.checkpoint:
        try:
            output_dir.check_beside(job.checkpoint, job.vocab_file)
        except UserError as error:
            found.append(wrong(str(error)))
    for name in ("do_lower_case", "strip_accents"):
        given = getattr(job, name)
        if scan.runs and given not in (None, scan.runs[0][name]):
            found.append(
                wrong(
                    f"--{name}={given}",
                    expected=f"{not given}, as the records were made",
                )
            )
    if vocab or scan.vocab:
        found += vocabulary_checks.check_use(
            job.vocab_file if vocab else scan.runs[0]["vocab_file"],
            vocab or scan.vocab,
            casing(job, scan),
            config.vocab_size if config else None,
            job.config_file,
        )
    if config:
        found += config_checks.check_length(
            config, job.config_file, scan.max_seq_length, "the records"
        )
    if job.checkpoint:
        found += run.examine_checkpoint(job.checkpoint, config, job.config_file)
    if job.folder:
        found += run.examine_run(job, config, scan)
    return found


def published() -> dict[str, BertConfig]:
    """The configs that come with the project."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "configs")
    return {
        os.path.basename(path).removesuffix(".json"): (
            BertConfig.from_json_file(path)
        )
        for path in sorted(glob.glob(os.path.join(glob.escape(here), "*.json")))
    }


def casing(job: Job, scan: records.Scan) -> bool | None:
    """How text is lower-cased, if it is known."""
    if job.do_lower_case is not None:
        return job.do_lower_case
    return scan.runs[0]["do_lower_case"] if scan.runs else None


def main(argv: list[str]) -> int:
    """Runs the script; returns its exit code."""
    found = examine(read_flags(argv))
    counts = []
    for level in (report.WRONG, report.SUSPICIOUS, report.FINE):
        lines = [x.message for x in found if x.level == level]
        for line in lines:
            print(f"{level}: {line}")
        counts.append(f"{len(lines)} {level}")
    print(", ".join(counts))
    return int(any(finding.level == report.WRONG for finding in found))


if __name__ == "__main__":
    sys.exit(common_flags.run(main, sys.argv))
