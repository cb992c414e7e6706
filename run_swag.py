r"""Fine-tunes BERT on multiple choice: SWAG, or your own choices.

    python run_swag.py --train_file=swag/train.csv --eval_file=swag/val.csv \
        --predict_file=swag/test.csv --do_train --do_eval --do_predict \
        --init_checkpoint=bert_model.ckpt --output_dir=swag

Files are SWAG's CSV, or JSON lines with two or more choices:

    {"context": "She opens the box.", "choices": ["She ...", "The ..."],
     "label": 0}
"""

import sys

from bert.common import flags
from bert.reports import drawing
from bert.tasks import main as tasks_main
from bert.tasks import starting_model
from bert.tasks.run_folder import RunFolder
from bert.tasks.swag import examples as swag
from bert.tasks.swag.settings import Settings
from bert.tasks.sweep import Sweep
from bert.training import workers


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = flags.parse(argv, Settings, __doc__)
    sweep = Sweep(tasks_main.complete(settings))
    for settings in sweep:
        model = starting_model.find(settings)
        tables = swag.read_files(settings)
        starting_model.warn(
            model,
            (
                " ".join([x.context, *x.choices])
                for table in tables.values()
                for x in table.rows
            ),
        )
        with RunFolder.open(settings, model.config, model.tokenizer) as folder:
            # TensorFlow is imported late: invalid flags and files fail before.
            from bert.tasks import finetuning
            from bert.tasks.swag.task import make_task

            task = make_task(settings, model, folder, tables)
            sweep.tell(finetuning.work(settings, model, folder, task))
    drawing.draw_trained(sweep.settings, workers.is_chief())


if __name__ == "__main__":
    sys.exit(tasks_main.run(main, sys.argv))
