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
from bert.common import main as common_main
from bert.reports import drawing
from bert.tasks import main as tasks_main
from bert.tasks.run_folder import RunFolder
from bert.tasks.swag import examples as swag
from bert.tasks.swag.settings import Settings
from bert.tasks.sweep import Sweep
from bert.training import workers


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = flags.parse(argv, Settings, __doc__)
    sweep = Sweep(settings)
    for settings in sweep:
        with RunFolder.open(settings) as folder:
            tables = swag.read_files(folder)

            # TensorFlow is imported late: invalid flags and files fail before.
            from bert.tasks import finetuning
            from bert.tasks.swag.task import make_task

            task = make_task(folder, tables)
            sweep.add_result(finetuning.train_and_evaluate(folder, task))
    drawing.draw_trained(sweep.settings, workers.is_chief())


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv, *tasks_main.hooks()))
