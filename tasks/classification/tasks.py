"""Tasks of run_classifier.py: GLUE and XNLI."""

import dataclasses

from tasks.classification import metrics
from tasks.classification.examples import REGRESSION, Labels, Source


@dataclasses.dataclass(frozen=True)
class ClassificationTask:
    """The files, labels and metrics of a task.

    Attributes:
        train: files for training; paths are relative to --data_dir, and
            `{language}` is replaced.
        dev, test: files for evaluation and prediction.
        labels: the valid labels.
        metrics: names of metrics; the first selects the best checkpoint.
        parts: names of the dev and test files, if there are several.
        submission: names of the test files' predictions on the GLUE site.
    """

    train: tuple[Source, ...] = ()
    dev: tuple[Source, ...] = ()
    test: tuple[Source, ...] = ()
    labels: Labels = Labels()
    metrics: tuple[str, ...] = (metrics.ACCURACY,)
    parts: tuple[str, ...] = ("",)
    submission: tuple[str, ...] = ()


_NLI = Labels(names=("contradiction", "entailment", "neutral"))
_XNLI = dataclasses.replace(_NLI, aliases=(("contradictory", "contradiction"),))
_TWO = Labels(names=("0", "1"))
_ENTAILED = Labels(names=("entailment", "not_entailment"))
_ACCURACY_F1 = (metrics.ACCURACY, metrics.F1)


def _xnli(file: str) -> Source:
    return Source(file, 6, 7, 1, keep=(0, "{language}"))


# To add a task, add an entry: its files, each with the columns, from 0, of the
# text, the second text, the label and the id.
TASKS = {
    "cola": ClassificationTask(
        (Source("train.tsv", 3, None, 1, header=False),),
        (Source("dev.tsv", 3, None, 1, header=False),),
        (Source("test.tsv", "sentence", id="index"),),
        _TWO,
        (metrics.MATTHEWS, metrics.ACCURACY),
        submission=("CoLA",),
    ),
    "mnli": ClassificationTask(
        (Source("train.tsv", 8, 9, -1),),
        (
            Source("dev_matched.tsv", 8, 9, -1),
            Source("dev_mismatched.tsv", 8, 9, -1),
        ),
        (
            Source("test_matched.tsv", 8, 9, id=0),
            Source("test_mismatched.tsv", 8, 9, id=0),
        ),
        _NLI,
        parts=("", "mismatched"),
        submission=("MNLI-m", "MNLI-mm"),
    ),
    "mrpc": ClassificationTask(
        (Source("train.tsv", 3, 4, 0),),
        (Source("dev.tsv", 3, 4, 0),),
        (Source("test.tsv", "#1 String", "#2 String", id="index"),),
        _TWO,
        _ACCURACY_F1,
        submission=("MRPC",),
    ),
    "xnli": ClassificationTask(
        (Source("multinli/multinli.train.{language}.tsv", 0, 1, 2),),
        (_xnli("xnli.dev.tsv"),),
        (_xnli("xnli.test.tsv"),),
        _XNLI,
    ),
    "sst2": ClassificationTask(
        (Source("train.tsv", 0, None, 1),),
        (Source("dev.tsv", 0, None, 1),),
        (Source("test.tsv", "sentence", id="index"),),
        _TWO,
        submission=("SST-2",),
    ),
    "qnli": ClassificationTask(
        (Source("train.tsv", 1, 2, -1),),
        (Source("dev.tsv", 1, 2, -1),),
        (Source("test.tsv", 1, 2, id=0),),
        _ENTAILED,
        submission=("QNLI",),
    ),
    "qqp": ClassificationTask(
        (Source("train.tsv", 3, 4, 5, skip_broken=True),),
        (Source("dev.tsv", 3, 4, 5, skip_broken=True),),
        (Source("test.tsv", "question1", "question2", id="id"),),
        _TWO,
        _ACCURACY_F1,
        submission=("QQP",),
    ),
    "rte": ClassificationTask(
        (Source("train.tsv", 1, 2, -1),),
        (Source("dev.tsv", 1, 2, -1),),
        (Source("test.tsv", 1, 2, id=0),),
        _ENTAILED,
        submission=("RTE",),
    ),
    "wnli": ClassificationTask(
        (Source("train.tsv", 1, 2, -1),),
        (Source("dev.tsv", 1, 2, -1),),
        (Source("test.tsv", 1, 2, id=0),),
        _TWO,
        submission=("WNLI",),
    ),
    "stsb": ClassificationTask(
        (Source("train.tsv", 7, 8, -1),),
        (Source("dev.tsv", 7, 8, -1),),
        (Source("test.tsv", 7, 8, id=0),),
        Labels(REGRESSION),
        (metrics.PEARSON, metrics.SPEARMAN),
        submission=("STS-B",),
    ),
    "ax": ClassificationTask(  # the diagnostic set, for a model trained on MNLI
        dev=(Source("diagnostic-full.tsv", "Premise", "Hypothesis", "Label"),),
        test=(Source("diagnostic.tsv", 1, 2, id=0),),
        labels=_NLI,
        metrics=(metrics.MATTHEWS, metrics.ACCURACY),
        submission=("AX",),
    ),
}
