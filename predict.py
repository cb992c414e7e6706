"""Predicts with an exported SavedModel: a line of JSON for each line of text.

    python predict.py --model=export --input_file=lines.txt
    python predict.py --model=export < lines.txt

Tabs separate the texts of a line, including each choice:

    text                 text, text_b         of run_classifier.py, run_ner.py
    question, context    context, choices     of run_squad.py, run_swag.py

The output for an invalid line is {"error": "...", "line": 3}; with --strict,
the script exits with code 2 instead.

A model that you did not export yourself needs --trust_model: loading it runs
it as a program. doctor.py examines it first.

The model is loaded once, and each line is answered as soon as it is read, so
another program can keep this one open and send it one line at a time.
"""

import sys

from bert.common import flags, storage
from bert.common import main as common_main
from bert.common.progress import say
from bert.serving import answer_lines, asking
from bert.serving.asking import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = flags.parse(argv, Settings, __doc__)
    settings.check()
    model = asking.load(settings)
    from bert.training import distribution

    say(distribution.describe(distribution.make_strategy("one_device")))
    path = settings.input_file
    printer = answer_lines.AnswerPrinter(
        model,
        settings.json,
        settings.batch_size,
        settings.strict,
        path or answer_lines.STDIN,
    )
    if not path and sys.stdin.isatty():
        say(f"reading {', '.join(model.inputs)}, separated by tabs; ^D ends")
    opened = storage.open_file(path, "rb") if path else sys.stdin.buffer
    with opened as stream:
        for lines in answer_lines.read_lines(stream):
            printer.print_answers(lines)
    for line in printer.notes():
        say(line)


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
