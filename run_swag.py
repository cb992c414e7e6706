r"""Fine-tunes BERT on multiple choice: SWAG, or your own choices.

    python run_swag.py --train_file=swag/train.csv --eval_file=swag/val.csv \
        --predict_file=swag/test.csv --do_train --do_eval --do_predict \
        --init_checkpoint=bert_model.ckpt --output_dir=swag

Files are SWAG's CSV, or JSON lines with two or more choices:

    {"context": "She opens the box.", "choices": ["She ...", "The ..."],
     "label": 0}
"""

import sys

from bert.common import command_line
from bert.runs import driver, signals
from bert.tasks.swag import inputs
from bert.tasks.swag.settings import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    driver.run(command_line.parse(argv, Settings, __doc__), inputs.read)


if __name__ == "__main__":
    sys.exit(signals.run(main))
