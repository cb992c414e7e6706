r"""Fine-tunes BERT to label words, such as names or parts of speech.

    python run_ner.py --train_file=train.txt --eval_file=valid.txt \
        --predict_file=test.txt --do_train --do_eval --do_predict \
        --vocab_file=vocab.txt --bert_config_file=bert_config.json \
        --init_checkpoint=bert_model.ckpt --output_dir=ner \
        --do_lower_case=False --document_context

Files have one word per line, its label in the last column (--label_column), a
blank line between sentences and -DOCSTART- between documents.
"""

import sys

from common import storage
from reports import drawing
from tasks import finetuning
from tasks import main as tasks_main
from tasks.ner import conll, run
from tasks.ner.settings import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = tasks_main.parse(argv, Settings, __doc__)
    paths = finetuning.requested_files(settings)
    settings.check()
    setup = finetuning.check(settings.tuning)
    sentences = {}
    for name, path in paths.items():
        storage.list_files(path, name)
        label = None if name == "predict_file" else settings.label_column
        columns = conll.Columns(settings.word_column, label)
        sentences[name] = conll.read(path, columns)
    kind, labels = run.find_labels(settings, sentences)
    finetuning.warn_vocabulary(
        settings.tuning,
        setup,
        (" ".join(x.words) for some in sentences.values() for x in some),
    )
    task = run.Labelling(settings, setup, sentences, kind, labels)
    finetuning.print_written(finetuning.run(settings.tuning, task))
    drawing.draw_trained(settings)


if __name__ == "__main__":
    sys.exit(tasks_main.run(main, sys.argv))
