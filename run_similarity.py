r"""Fine-tunes BERT to text embeddings for similarity and search.

    python run_similarity.py --train_file=train.csv --eval_file=dev.csv \
        --do_train --do_eval --init_checkpoint=bert --output_dir=similarity

Files are tables with the columns text, text_b and score. With --loss=ranking
they have an anchor and a positive text per row, without scores.
"""

import sys

from bert.common import flags
from bert.common import main as common_main
from bert.reports import drawing
from bert.tasks import main as tasks_main
from bert.tasks.run_folder import RunFolder
from bert.tasks.similarity import examples
from bert.tasks.similarity.settings import Settings
from bert.tasks.sweep import Sweep
from bert.training import workers


def main(argv: list[str]) -> None:
    """Runs the script."""
    settings = flags.parse(argv, Settings, __doc__)
    sweep = Sweep(settings)
    for settings in sweep:
        with RunFolder.open(settings) as folder:
            tables = examples.read_files(folder)

            # TensorFlow is imported late: invalid flags and files fail before.
            from bert.tasks import finetuning
            from bert.tasks.similarity.task import make_task

            task = make_task(folder, tables)
            sweep.add_result(finetuning.train_and_evaluate(folder, task))
    drawing.draw_trained(sweep.settings, workers.is_chief())


if __name__ == "__main__":
    sys.exit(common_main.run(main, sys.argv, *tasks_main.hooks()))
