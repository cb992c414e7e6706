r"""Creates TFRecord shards of masked sentence pairs from a corpus.

The corpus has one sentence per line and a blank line between documents. Files
that end in .gz are decompressed. Example:

    python create_pretraining_data.py --input_file='wiki/*.txt.gz' \
        --output_file=records/wiki.tfrecord --vocab_file=vocab.txt

Named groups, such as languages, are sampled so that small ones get more weight:

    --input_file='en=wiki/en/*.gz,sw=wiki/sw/*.gz'
"""

import sys

from bert.common import command_line
from bert.common import main as common_main
from bert.common.errors import printable
from bert.common.jobs import any_runner, runners
from bert.common.progress import counted, log
from bert.data.pretraining import creation, record_fractions
from bert.data.pretraining.creation import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    argv, beam_options = runners.split_options(argv)
    settings = command_line.parse(argv, Settings, __doc__)
    settings.check_outputs()
    any_runner.check(settings, beam_options)

    job = creation.open_job(settings)
    counts = creation.create(job, settings, beam_options)
    print(creation.report(counts, settings))
    for line in record_fractions.warnings(counts, settings):
        log(f"warning: {line}")
    print(
        f"wrote {counted(counts['records'], 'record')} to "
        f"{printable(', '.join(settings.output_files))}"
    )


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
