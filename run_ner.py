r"""Fine-tunes BERT to label words, such as entities or parts of speech.

    python run_ner.py --train_file=train.txt --eval_file=valid.txt \
        --predict_file=test.txt --do_train --do_eval --do_predict \
        --init_checkpoint=bert_model.ckpt --output_dir=ner \
        --document_context

Files have one word per line, its label in the last column (--label_column), a
blank line between sentences and -DOCSTART- between documents.
"""

import sys

from bert.common import command_line
from bert.runs import driver, signals
from bert.tasks.ner import inputs
from bert.tasks.ner.settings import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    driver.run(command_line.parse(argv, Settings, __doc__), inputs.read)


if __name__ == "__main__":
    sys.exit(signals.run(main))
