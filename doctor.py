r"""Checks records, vocabulary, config, checkpoint and runs for errors.

    python doctor.py --input_file='records/*.tfrecord*' --vocab_file=vocab.txt \
        --bert_config_file=config.json --init_checkpoint=bert_model.ckpt \
        --output_dir=run

Pass at least one flag. Prints one line per finding. "wrong": the input would
fail or spoil a run. "suspicious": unusual for healthy runs. The exit code is 1
if a finding is wrong and 2 if the command line is wrong. No file is written.
"""

import sys

from bert.checks import findings
from bert.checks.settings import Settings
from bert.common import command_line
from bert.common import main as common_main


def main(argv: list[str]) -> int:
    """Runs the script and returns its exit code."""
    settings = command_line.parse(argv, Settings, __doc__)
    settings.check_folder()
    from bert.checks import run

    examined = run.examine(settings)
    counts = []
    for level in (findings.WRONG, findings.SUSPICIOUS, findings.FINE):
        lines = [x.message for x in examined if x.level == level]
        for line in lines:
            print(f"{level}: {line}")
        counts.append(f"{len(lines)} {level}")

    print(", ".join(counts))
    return int(any(finding.level == findings.WRONG for finding in examined))


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
