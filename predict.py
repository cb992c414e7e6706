"""Asks an exported SavedModel: lines of text in, a line of JSON out for each.

    python predict.py --model=export --trust_model < lines.txt

A model of two texts takes a tab between them, one of choices a tab before each:

    text                 text, text_b         of run_classifier.py, run_ner.py
    question, context    context, choices     of run_squad.py, run_swag.py

A line that cannot be answered is {"error": "...", "line": 3}, and the rest go
on; with --strict it ends the run with exit code 2.

The model is loaded once; an answer comes as soon as its line is there, so a
program can keep this one open and ask it line by line.
"""

import os
import sys

from common import flags
from common import main as common_main
from common.progress import say
from serving import asking
from serving.asking import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = flags.parse(argv, Settings, __doc__)
    settings.check()
    model = asking.load(settings)
    answers = asking.Asking(
        model, settings.json, settings.batch_size, settings.strict
    )
    if sys.stdin.isatty():
        say(f"reading {', '.join(model.inputs)}, with tabs between; ^D ends")
    try:
        for lines in asking.arriving(sys.stdin.buffer):
            answers.print_answers(lines)
    except BrokenPipeError:  # whoever reads has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if answers.wrong:
        say(
            f"warning: {answers.wrong:,} of {answers.count:,} lines have an "
            "error instead of an answer"
        )


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
