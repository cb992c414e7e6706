"""Files about the rows of all folds of run_classifier.py."""

import dataclasses

import numpy as np

from bert.data import label_kinds
from bert.data.label_kinds import CLASSES
from bert.tasks import sweep
from bert.tasks.classification import answers, inputs
from bert.tasks.classification.inputs import DEV
from bert.tasks.classification.settings import Settings
from bert.tasks.run_folder import RunFolder

OUT_OF_FOLD = "out_of_fold.tsv"
DOUBTFUL = "out_of_fold_doubtful_labels.tsv"


def join(settings: Settings, folder: RunFolder) -> tuple[list[str], dict]:
    """Writes the out-of-fold predictions for all rows.

    Args:
        settings: the settings of the script, with --num_folds.
        folder: the folder of all runs, which have written their logits.

    Returns:
        the paths of the files, and a report on all rows, see `answers.report`.
    """
    held_out = []
    for trial in sweep.expand_trials(settings):
        path = trial.settings.output_dir
        data = inputs.read(RunFolder(path, path, settings=trial.settings))
        (part,) = data.of(DEV)
        logits = answers.read_logits(folder.file(trial.name))
        each = zip(part.examples, logits, strict=True)
        held_out += [(row, values, trial.name) for row, values in each]
    held_out.sort(key=lambda x: x[0].line)
    rows, all_logits, names = map(list, zip(*held_out))
    logits, labels = np.stack(all_logits), data.labels

    paths = [folder.file(OUT_OF_FOLD)]
    answers.write_predictions(
        paths[0], rows, logits, labels, data.has_pairs, names
    )
    if labels.kind == CLASSES:
        paths.append(folder.file(DOUBTFUL))
        answers.write_doubtful_labels(
            paths[1], rows, logits, labels, data.has_pairs
        )
    whole = dataclasses.replace(part, examples=rows)
    found = label_kinds.answers(logits, labels.kind, labels.decision)
    return paths, answers.report(whole, labels, logits, found)
