"""Predicts texts with a fine-tuned model, and prints a line of JSON for each.

    python predict.py --model=run --input_file=lines.txt
    python predict.py --model=export < lines.txt
    python predict.py --model=export --input_file=table.csv \\
        --text_column=subject --id_column=id

Tables are .csv or .tsv files, also with .gz, or .parquet files. The output has
a line for each row, with its id. JSON lines are read from .jsonl files or with
--json. The output repeats their keys that are not inputs of the model.

In lines of text, tabs separate the inputs of the model, including each choice:

    text, or text and text_b    models of run_classifier.py; of a Hugging Face
                                classifier, text_b may be missing
    text                        models of run_ner.py
    question, context           models of run_squad.py
    context, choices            models of run_swag.py

{"text": "...", "texts": ["...", ...]} is a query. Pair classifiers, pair
regressors and embedding models rank its texts.

The output for an invalid line is {"error": "...", "line": 3}. With --strict,
the script exits with code 2 instead.

--model is the folder of a run, an export or a Hugging Face model. An export
with an OpenVINO network is computed without TensorFlow, in a fraction of the
time and memory.

Large files are divided into partitions, in several processes or with Apache
Beam. A killed run continues. All ways write the same bytes:

    python predict.py --model=export --input_file='part-*.parquet' \\
        --output_file=predictions.parquet

The model is loaded once, and each line is predicted as soon as it is read.
Another program can keep the script running and send one line at a time.
"""

import io
import sys

from bert.common import command_line
from bert.common import main as common_main
from bert.common.jobs import any_runner, runners
from bert.common.progress import log
from bert.inference import jsonl, prediction_job
from bert.inference.predictor import Predictor
from bert.inference.settings import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    argv, beam_options = runners.split_options(argv)
    settings = command_line.parse(argv, Settings, __doc__)
    settings.check()
    any_runner.check(settings, beam_options)
    if settings.output_file:
        prediction_job.write(settings, beam_options)
        return

    # JSON is UTF-8, which the encoding of the locale may not be.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")

    predictor = Predictor.open(settings.model, settings.engine)
    settings.check_signature(predictor.task.signatures)
    path = settings.input_file
    printer = jsonl.PredictionPrinter(
        predictor,
        settings.batch_size,
        settings.strict,
        path or jsonl.STDIN,
        settings.signature,
    )

    task = predictor.task
    inputs = settings.ordered(task.inputs, task.optional_inputs)
    if not path and sys.stdin.isatty():
        log(f"reading {', '.join(inputs)}, separated by tabs; ^D ends")
    for examples in jsonl.read(settings, task, path, inputs):
        printer.print(examples)

    counts = printer.counts
    for line in counts.notes():
        log(line)
    if printer.first_error and counts.errors == counts.lines:
        raise printer.first_error


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv))
