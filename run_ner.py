r"""Fine-tunes BERT to label words, such as entities or parts of speech.

    python run_ner.py --train_file=train.txt --eval_file=valid.txt \
        --predict_file=test.txt --do_train --do_eval --do_predict \
        --init_checkpoint=bert_model.ckpt --output_dir=ner \
        --document_context

Files have one word per line, its label in the last column (--label_column), a
blank line between sentences and -DOCSTART- between documents.
"""

import sys

from bert.common import flags
from bert.common import main as common_main
from bert.reports import drawing
from bert.tasks import main as tasks_main
from bert.tasks.ner import labels
from bert.tasks.ner.settings import Settings
from bert.tasks.run_folder import RunFolder
from bert.tasks.sweep import Sweep
from bert.training import workers


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = flags.parse(argv, Settings, __doc__)
    sweep = Sweep(settings)
    for settings in sweep:
        with RunFolder.open(settings) as folder:
            sentences, kind, names = labels.read_files(folder)

            # TensorFlow is imported late: invalid flags and files fail before.
            from bert.tasks import finetuning
            from bert.tasks.ner.task import make_task

            task = make_task(folder, sentences, kind, names)
            sweep.add_result(finetuning.train_and_evaluate(folder, task))
    drawing.draw_trained(sweep.settings, workers.is_chief())


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv, *tasks_main.hooks()))
