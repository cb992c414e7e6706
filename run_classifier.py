r"""Fine-tunes BERT to classify texts or pairs: GLUE, XNLI, your own tables.

    python run_classifier.py --task_name=csv --train_file=mails.csv \
        --eval_share=0.1 --text_column=subject --label_column=folder \
        --init_checkpoint=hf://google-bert/bert-base-uncased \
        --do_train --do_eval --output_dir=mails --export_dir=mails_export

    python run_classifier.py --task_name=mrpc --data_dir=glue/MRPC \
        --init_checkpoint=bert_model.ckpt --output_dir=mrpc \
        --do_train --do_eval --do_predict
"""

import sys

from bert.common import flags
from bert.common.progress import say
from bert.reports import drawing
from bert.tasks import main as tasks_main
from bert.tasks import run_folder, starting_model
from bert.tasks.classification import folds, inputs
from bert.tasks.classification.settings import Settings
from bert.tasks.run_folder import RunFolder
from bert.tasks.sweep import Sweep
from bert.training import workers


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = flags.parse(argv, Settings, __doc__)
    sweep = Sweep(tasks_main.complete(settings), folds.join)
    for settings in sweep:
        data = inputs.read(settings)
        run_folder.check_labels(settings.output_dir, data.describe())
        model = starting_model.find(settings)
        starting_model.warn(model, data.texts())
        with RunFolder.open(settings, model.config, model.tokenizer) as folder:
            # TensorFlow is imported late: invalid flags and files fail before.
            from bert.tasks import finetuning
            from bert.tasks.classification.task import make_task

            for note in data.notes:
                say(note)
            task = make_task(settings, model, folder, data)
            sweep.tell(finetuning.work(settings, model, folder, task))
    drawing.draw_trained(sweep.settings, workers.is_chief())


if __name__ == "__main__":
    sys.exit(tasks_main.run(main, sys.argv))
