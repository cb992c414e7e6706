"""Predicts with a fine-tuned model: a line of JSON for each line of text.

    python predict.py --model=run --input_file=lines.txt
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

--model is the folder of a run, of an export or of Hugging Face transformers. An
export with a network for OpenVINO is computed without TensorFlow, in a fraction
of the time and memory.

The model is loaded once, and each line is answered as soon as it is read, so
another program can keep this one open and send it one line at a time.
"""

import sys

from bert.common import flags
from bert.common import main as common_main
from bert.common.progress import say
from bert.inference import jsonl
from bert.inference.predictor import Predictor
from bert.inference.settings import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = flags.parse(argv, Settings, __doc__)
    settings.check()

    predictor = Predictor.open(settings.model, settings.engine)
    settings.check_signature(predictor.task.signatures)
    source = settings.input_file or jsonl.STDIN
    printer = jsonl.PredictionPrinter(
        predictor,
        settings.batch_size,
        settings.strict,
        source,
        settings.signature,
    )

    if not settings.input_file and sys.stdin.isatty():
        fields = ", ".join(settings.ordered(predictor.task.inputs))
        say(f"reading {fields}, separated by tabs; ^D ends")
    for examples in jsonl.read(settings, predictor, source):
        printer.print(examples)

    for line in printer.notes():
        say(line)


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
