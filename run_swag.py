r"""Fine-tunes BERT on multiple choice: SWAG, or your own choices.

    python run_swag.py --train_file=swag/train.csv --eval_file=swag/val.csv \
        --predict_file=swag/test.csv --do_train --do_eval --do_predict \
        --vocab_file=vocab.txt --bert_config_file=bert_config.json \
        --init_checkpoint=bert_model.ckpt --output_dir=swag

Files are SWAG's CSV, or JSON lines with two or more choices:

    {"context": "She opens the door.", "choices": ["She ...", "The ..."],
     "label": 0}
"""

import sys

from reports import drawing
from tasks import finetuning
from tasks import main as tasks_main
from tasks.swag import examples as swag
from tasks.swag import run
from tasks.swag.settings import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = tasks_main.parse(argv, Settings, __doc__)
    paths = finetuning.requested_files(settings)
    setup = finetuning.check(settings.tuning)
    examples = {}
    for name, path in paths.items():
        labelled = name != "predict_file"
        examples[name] = swag.read(path, labelled)
    finetuning.warn_vocabulary(
        settings.tuning,
        setup,
        (
            " ".join([x.context, *x.choices])
            for some in examples.values()
            for x in some
        ),
    )
    task = run.Choosing(settings, setup, examples)
    finetuning.print_written(finetuning.run(settings.tuning, task))
    drawing.draw_trained(settings)


if __name__ == "__main__":
    sys.exit(tasks_main.run(main, sys.argv))
