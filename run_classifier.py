r"""Fine-tunes BERT on sentences or sentence pairs: GLUE, XNLI, your own.

    python run_classifier.py --task_name=mrpc --data_dir=glue/MRPC \
        --vocab_file=vocab.txt --bert_config_file=bert_config.json \
        --init_checkpoint=bert_model.ckpt --output_dir=mrpc \
        --do_train --do_eval --do_predict

Your own files, .tsv, .csv or .jsonl, need no code; --eval_share=0.1 divides
one file, and --predict_file may be a .txt file with one text per line:

    --task_name=csv --train_file=mails.csv --eval_share=0.1 \
        --text_column=subject --text_b_column=body --label_column=folder
"""

import sys

from bert.reports import drawing
from bert.tasks import finetuning
from bert.tasks import main as tasks_main
from bert.tasks.classification import inputs
from bert.tasks.classification.settings import Settings
from bert.tasks.run_folder import RunFolder


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = tasks_main.parse(argv, Settings, __doc__)
    data = inputs.read(settings)
    finetuning.check_labels(
        settings.tuning.training.output_dir, data.describe()
    )
    model = finetuning.check(settings.tuning)
    finetuning.warn(model, data.texts())
    with RunFolder.open(
        settings.tuning.training, model.config, model.tokenizer
    ) as folder:
        from bert.tasks.classification import run

        run.run(settings, model, folder, data)
        if folder.is_chief:
            drawing.draw_trained(settings)


if __name__ == "__main__":
    sys.exit(tasks_main.run(main, sys.argv))
