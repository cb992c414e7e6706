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
from bert.reports import drawing
from bert.tasks import main as tasks_main
from bert.tasks import starting_model
from bert.tasks.ner import labels
from bert.tasks.ner.settings import Settings
from bert.tasks.run_folder import RunFolder
from bert.tasks.sweep import Sweep
from bert.training import workers


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = flags.parse(argv, Settings, __doc__)
    sweep = Sweep(tasks_main.complete(settings))
    for settings in sweep:
        model = starting_model.find(settings)
        sentences = labels.read_files(settings)
        kind, names = labels.find(settings, sentences)
        sentences = labels.hold_out(settings, sentences)
        starting_model.warn(
            model,
            (" ".join(x.words) for file in sentences.values() for x in file),
        )
        with RunFolder.open(settings, model.config, model.tokenizer) as folder:
            # TensorFlow is imported late: invalid flags and files fail before.
            from bert.tasks import finetuning
            from bert.tasks.ner.task import make_task

            task = make_task(settings, model, folder, sentences, kind, names)
            sweep.tell(finetuning.work(settings, model, folder, task))
    drawing.draw_trained(sweep.settings, workers.is_chief())


if __name__ == "__main__":
    sys.exit(tasks_main.run(main, sys.argv))
