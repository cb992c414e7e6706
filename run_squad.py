r"""Fine-tunes BERT to answer questions on paragraphs, as in SQuAD.

    python run_squad.py --train_file=train-v1.1.json \
        --predict_file=dev-v1.1.json --do_train --do_predict --do_eval \
        --init_checkpoint=bert_model.ckpt --output_dir=squad

For SQuAD 2.0, with unanswerable questions, add:

    --version_2_with_negative --tune_null_threshold --export_dir=answers
"""

import sys

from bert.common import flags
from bert.common import main as common_main
from bert.reports import drawing
from bert.tasks import main as tasks_main
from bert.tasks.run_folder import RunFolder
from bert.tasks.squad import examples
from bert.tasks.squad.settings import Settings
from bert.tasks.sweep import Sweep
from bert.training import workers


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = flags.parse(argv, Settings, __doc__)
    sweep = Sweep(settings)
    for settings in sweep:
        with RunFolder.open(settings) as folder:
            datasets = examples.read_files(folder)

            # TensorFlow is imported late: invalid flags and files fail before.
            from bert.tasks import finetuning
            from bert.tasks.squad.task import make_task

            task = make_task(folder, datasets)
            sweep.add_result(finetuning.train_and_evaluate(folder, task))
    drawing.draw_trained(sweep.settings, workers.is_chief())


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv, *tasks_main.hooks()))
