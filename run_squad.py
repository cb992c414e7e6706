r"""Fine-tunes BERT to answer questions on paragraphs, as in SQuAD.

    python run_squad.py --train_file=train-v1.1.json \
        --predict_file=dev-v1.1.json --do_train --do_predict --do_eval \
        --init_checkpoint=bert_model.ckpt --output_dir=squad

For SQuAD 2.0, with unanswerable questions, add:

    --version_2_with_negative --tune_null_threshold --export_dir=answers
"""

import sys

from bert.common import command_line
from bert.runs import driver, signals
from bert.tasks.squad import inputs
from bert.tasks.squad.settings import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    driver.run(command_line.parse(argv, Settings, __doc__), inputs.read)


if __name__ == "__main__":
    sys.exit(signals.run(main))
