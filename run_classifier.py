r"""Fine-tunes BERT to classify texts or pairs: GLUE, XNLI, your own tables.

    python run_classifier.py --task_name=csv --train_file=mails.csv \
        --eval_fraction=0.1 --text_column=subject --label_column=folder \
        --init_checkpoint=hf://google-bert/bert-base-uncased \
        --do_train --do_eval --output_dir=mails --export_dir=mails_export

    python run_classifier.py --task_name=mrpc --data_dir=glue/MRPC \
        --init_checkpoint=bert_model.ckpt --output_dir=mrpc \
        --do_train --do_eval --do_predict
"""

import sys

from bert.common import flags
from bert.common import main as common_main
from bert.reports import drawing
from bert.tasks import main as tasks_main
from bert.tasks.classification import inputs
from bert.tasks.classification.settings import Settings
from bert.tasks.run_folder import RunFolder
from bert.tasks.sweep import Sweep
from bert.training import workers


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = flags.parse(argv, Settings, __doc__)
    sweep = Sweep(settings)
    for settings in sweep:
        with RunFolder.open(settings) as folder:
            data = inputs.read(folder)

            # TensorFlow is imported late: invalid flags and files fail before.
            from bert.tasks import finetuning
            from bert.tasks.classification.predictions import join_folds
            from bert.tasks.classification.task import make_task

            sweep.join_folds = join_folds
            task = make_task(folder, data)
            sweep.add_result(finetuning.train_and_evaluate(folder, task))
    drawing.draw_trained(sweep.settings, workers.is_chief())


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv, *tasks_main.hooks()))
