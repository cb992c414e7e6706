"""Tasks of run_classifier.py: GLUE and XNLI."""

import dataclasses

from bert.data.label_kinds import CLASSES, MULTI_LABEL, REGRESSION, Labels
from bert.tasks.classification.examples import File

ACCURACY, F1, MATTHEWS = "accuracy", "f1", "matthews"
PEARSON, SPEARMAN, MAE = "pearson", "spearman", "mae"
MICRO_F1, MACRO_F1 = "micro_f1", "macro_f1"
METRICS_OF = {  # kind of labels -> default metrics
    CLASSES: (ACCURACY, MACRO_F1),
    MULTI_LABEL: (MICRO_F1, ACCURACY),
    REGRESSION: (PEARSON, SPEARMAN, MAE),
}


@dataclasses.dataclass(frozen=True)
class ClassificationTask:
    """The files, labels and metrics of a task.

    Attributes:
        train: files for training. Paths are relative to --data_dir;
            `{language}` is a placeholder.
        dev, test: files for evaluation and prediction.
        labels: the valid labels.
        metrics: names of metrics; the first selects the best checkpoint.
    """

    train: tuple[File, ...] = ()
    dev: tuple[File, ...] = ()
    test: tuple[File, ...] = ()
    labels: Labels = Labels()
    metrics: tuple[str, ...] = (ACCURACY,)


_NLI = Labels(names=("contradiction", "entailment", "neutral"))
_XNLI = dataclasses.replace(_NLI, aliases=(("contradictory", "contradiction"),))
_TWO = Labels(names=("0", "1"))
_ENTAILED = Labels(names=("entailment", "not_entailment"))
_ACCURACY_F1 = (ACCURACY, F1)


def _xnli(file: str) -> File:
    return File(file, 6, 7, 1, keep=(0, "{language}"))


# A new task is a new entry: its files, each with the columns (from 0) of the
# text, the second text, the label and the id.
TASKS = {
    "cola": ClassificationTask(
        (File("train.tsv", 3, None, 1, header=False),),
        (File("dev.tsv", 3, None, 1, header=False),),
        (File("test.tsv", "sentence", id="index", submission="CoLA"),),
        _TWO,
        (MATTHEWS, ACCURACY),
    ),
    "mnli": ClassificationTask(
        (File("train.tsv", 8, 9, -1),),
        (
            File("dev_matched.tsv", 8, 9, -1),
            File("dev_mismatched.tsv", 8, 9, -1, part="mismatched"),
        ),
        (
            File("test_matched.tsv", 8, 9, id=0, submission="MNLI-m"),
            File(
                "test_mismatched.tsv",
                8,
                9,
                id=0,
                part="mismatched",
                submission="MNLI-mm",
            ),
        ),
        _NLI,
    ),
    "mrpc": ClassificationTask(
        (File("train.tsv", 3, 4, 0),),
        (File("dev.tsv", 3, 4, 0),),
        (
            File(
                "test.tsv",
                "#1 String",
                "#2 String",
                id="index",
                submission="MRPC",
            ),
        ),
        _TWO,
        _ACCURACY_F1,
    ),
    "xnli": ClassificationTask(
        (File("multinli/multinli.train.{language}.tsv", 0, 1, 2),),
        (_xnli("xnli.dev.tsv"),),
        (_xnli("xnli.test.tsv"),),
        _XNLI,
    ),
    "sst2": ClassificationTask(
        (File("train.tsv", 0, None, 1),),
        (File("dev.tsv", 0, None, 1),),
        (File("test.tsv", "sentence", id="index", submission="SST-2"),),
        _TWO,
    ),
    "qnli": ClassificationTask(
        (File("train.tsv", 1, 2, -1),),
        (File("dev.tsv", 1, 2, -1),),
        (File("test.tsv", 1, 2, id=0, submission="QNLI"),),
        _ENTAILED,
    ),
    "qqp": ClassificationTask(
        (File("train.tsv", 3, 4, 5, skip_broken=True),),
        (File("dev.tsv", 3, 4, 5, skip_broken=True),),
        (
            File(
                "test.tsv", "question1", "question2", id="id", submission="QQP"
            ),
        ),
        _TWO,
        _ACCURACY_F1,
    ),
    "rte": ClassificationTask(
        (File("train.tsv", 1, 2, -1),),
        (File("dev.tsv", 1, 2, -1),),
        (File("test.tsv", 1, 2, id=0, submission="RTE"),),
        _ENTAILED,
    ),
    "wnli": ClassificationTask(
        (File("train.tsv", 1, 2, -1),),
        (File("dev.tsv", 1, 2, -1),),
        (File("test.tsv", 1, 2, id=0, submission="WNLI"),),
        _TWO,
    ),
    "stsb": ClassificationTask(
        (File("train.tsv", 7, 8, -1),),
        (File("dev.tsv", 7, 8, -1),),
        (File("test.tsv", 7, 8, id=0, submission="STS-B"),),
        Labels(REGRESSION),
        METRICS_OF[REGRESSION],
    ),
    "ax": ClassificationTask(  # the diagnostic set, for a model trained on MNLI
        dev=(File("diagnostic-full.tsv", "Premise", "Hypothesis", "Label"),),
        test=(File("diagnostic.tsv", 1, 2, id=0, submission="AX"),),
        labels=_NLI,
        metrics=(MATTHEWS, ACCURACY),
    ),
}
