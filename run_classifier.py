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

from bert.common import command_line
from bert.runs import driver, signals
from bert.tasks.classification import inputs
from bert.tasks.classification.settings import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    driver.run(command_line.parse(argv, Settings, __doc__), inputs.read)


if __name__ == "__main__":
    sys.exit(signals.run(main))
