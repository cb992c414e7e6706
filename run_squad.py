r"""Fine-tunes BERT to answer questions on paragraphs, as in SQuAD.

    python run_squad.py --train_file=train-v1.1.json \
        --predict_file=dev-v1.1.json --do_train --do_predict --do_eval \
        --vocab_file=vocab.txt --bert_config_file=bert_config.json \
        --init_checkpoint=bert_model.ckpt --output_dir=squad

For SQuAD 2.0, with questions that have no answer:

    --version_2_with_negative --tune_null_threshold --export_dir=answers
"""

import sys

from reports import drawing
from tasks import finetuning
from tasks import main as tasks_main
from tasks.squad import examples
from tasks.squad.settings import Settings


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = tasks_main.parse(argv, Settings, __doc__)
    settings.check()
    setup = finetuning.check(settings.tuning, in_graph=True)
    version_2 = settings.version_2_with_negative
    most = settings.max_json_mb
    train = predict = None
    if settings.tuning.training.do_train:
        train = examples.read_for(
            settings.train_file, "train_file", examples.SPANS, version_2, most
        )
    if settings.needs_predictions:
        needed = examples.TEXTS if settings.needs_labels else examples.NOTHING
        predict = examples.read_for(
            settings.predict_file, "predict_file", needed, version_2, most
        )
    finetuning.warn_vocabulary(
        settings.tuning,
        setup,
        (
            f"{x.question} {x.context}"
            for dataset in (train, predict)
            for x in (dataset.examples if dataset else ())
        ),
    )
    from tasks.squad import run

    task = run.Squad(settings, setup, train, predict)
    finetuning.print_written(finetuning.run(settings.tuning, task))
    drawing.draw_trained(settings)


if __name__ == "__main__":
    sys.exit(tasks_main.run(main, sys.argv))
