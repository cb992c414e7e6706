r"""Creates TFRecord shards of masked sentence pairs from a corpus.

The corpus has one sentence per line and a blank line between documents; files
that end in .gz are decompressed. Example:

    python create_pretraining_data.py --input_file='wiki/*.txt.gz' \
        --output_file=records/wiki.tfrecord --vocab_file=vocab.txt

Languages, or other groups, may have names, to give small ones more weight:

    --input_file='en=wiki/en/*.gz,sw=wiki/sw/*.gz'
"""

import sys

from common import flags, outputs
from common import main as common_main
from common.errors import printable
from common.progress import say
from data.corpus import documents
from data.pretraining import creation, partitions, runners
from data.pretraining.creation import Settings
from data.text import vocabulary_checks


def main(argv: list[str]) -> None:
    """Runs the script."""
    argv, beam_options = creation.split_options(argv)
    settings = flags.parse(argv, Settings, __doc__)
    settings.check(beam_options)
    inputs = creation.list_inputs(settings.input_file)
    read = [path for paths in inputs.values() for path in paths]
    documents.check_names(read)
    read.append(settings.text.vocab_file)
    outputs.check_no_input(settings.output_files, read)
    tokenizer = settings.text.tokenizer()
    vocabulary_checks.warn(tokenizer)
    if settings.runner:
        runners.check_beam(settings.runner)
    counts = creation.create(settings, tokenizer, inputs, beam_options)
    print(creation.report(counts, settings.instances))
    for line in partitions.warnings(counts, settings.instances):
        say(f"warning: {line}")
    print(
        f"wrote {counts['records']:,} records to "
        f"{printable(', '.join(settings.output_files))}"
    )


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
