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

The output for an invalid line is {"error": "...", "line": 3}; with --strict,
the script exits with code 2 instead.

A model that you did not export yourself needs --trust_model: loading it runs
it as a program.

The model is loaded once, and each line is answered as soon as it is read, so
another program can keep this one open and send it one line at a time.
"""

import sys
from collections.abc import Iterator

from bert.common import flags, storage
from bert.common import main as common_main
from bert.common.formats import json_files
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
    source = settings.input_file or answer_lines.STDIN
    printer = answer_lines.AnswerPrinter(
        model, settings.batch_size, settings.strict, source
    )
    if not settings.input_file and sys.stdin.isatty():
        say(f"reading {', '.join(model.inputs)}, separated by tabs; ^D ends")
    for examples in _read(settings, model, source):
        printer.print_answers(examples)
    for line in printer.notes():
        say(line)


def _read(
    settings: Settings, model: asking.ServedModel, source: str
) -> Iterator[list[answer_lines.Example]]:
    if settings.reads_table:
        yield from answer_lines.read_table(settings, model)
        return
    path = settings.input_file
    is_json = settings.json or json_files.is_json(path or "")
    opened = storage.open_file(path, "rb") if path else sys.stdin.buffer
    with opened as stream:
        yield from answer_lines.read_examples(stream, model, is_json, source)


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
