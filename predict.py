"""Predicts with an exported SavedModel: a line of JSON for each line of text.

    python predict.py --model=export --input_file=lines.txt
    python predict.py --model=export < lines.txt
    python predict.py --model=export --input_file=table.csv \\
        --text_column=subject --id_column=id

A table is .csv, .tsv or .parquet: an answer for each row, with its id. Of lines
of JSON, in .jsonl or with --json, an answer repeats the keys that are no text.

Tabs separate the texts of a line, including each choice:

    text                 text, text_b         of run_classifier.py, run_ner.py
    question, context    context, choices     of run_squad.py, run_swag.py

{"text": "...", "texts": ["...", ...]} is a query: its texts are ordered, by
models of two texts and of vectors.

The output for an invalid line is {"error": "...", "line": 3}; with --strict,
the script exits with code 2 instead.

A SavedModel that you did not export yourself needs --trust_model: loading it
runs it as a program. The folder openvino of an export is answered without
TensorFlow, in a fraction of the time and memory.

The model is loaded once, and each line is answered as soon as it is read, so
another program can keep this one open and send it one line at a time.
"""

import sys

from bert.common import flags
from bert.common import main as common_main
from bert.common.progress import say
from bert.modeling import openvino_network
from bert.serving import answer_lines, asking
from bert.serving.predict_settings import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = flags.parse(argv, Settings, __doc__)
    settings.check()

    model = asking.load(settings)
    if not openvino_network.is_network(settings.model):
        from bert.training import distribution  # imports TensorFlow

        say(distribution.describe(distribution.make_strategy("one_device")))

    source = settings.input_file or answer_lines.STDIN
    printer = answer_lines.AnswerPrinter(
        model, settings.batch_size, settings.strict, source
    )

    if not settings.input_file and sys.stdin.isatty():
        say(f"reading {', '.join(model.inputs)}, separated by tabs; ^D ends")
    for examples in answer_lines.read(settings, model, source):
        printer.print_answers(examples)

    for line in printer.notes():
        say(line)


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
