"""Predicts with an exported SavedModel: a line of JSON for each line of text.

    python predict.py --model=export < lines.txt

Tabs separate the texts of a line, including each choice:

    text                 text, text_b         of run_classifier.py, run_ner.py
    question, context    context, choices     of run_squad.py, run_swag.py

The output for an invalid line is {"error": "...", "line": 3}; with --strict,
the script exits with code 2 instead.

The model is loaded once, and each line is answered as soon as it is read, so
another program can keep this one open and send it one line at a time.
"""

import os
import sys

from common import flags
from common import main as common_main
from common.progress import say
from serving import asking, bounds
from serving.asking import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = flags.parse(argv, Settings, __doc__)
    settings.check()
    bounds.limit_memory()
    model = asking.load(settings)
    from training import distribution

    say(distribution.describe(distribution.make_strategy("one_device")))
    printer = asking.AnswerPrinter(
        model, settings.json, settings.batch_size, settings.strict
    )
    if sys.stdin.isatty():
        say(f"reading {', '.join(model.inputs)}, separated by tabs; ^D ends")
    try:
        for lines in asking.read_lines(sys.stdin.buffer):
            printer.print_answers(lines)
    except BrokenPipeError:  # the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if printer.errors:
        say(
            f"warning: {printer.errors:,} of {printer.count:,} lines have an "
            "error instead of an answer"
        )


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
