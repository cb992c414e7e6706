"""Tasks of run_classifier.py: GLUE and XNLI."""

import dataclasses

from bert.data.label_kinds import CLASSES, MULTI_LABEL, REGRESSION, Labels
from bert.data.tables import Schema
from bert.tasks.classification.examples import (
    DEV,
    TEST,
    TRAIN,
    Data,
    Part,
    columns,
)

MISMATCHED = "mismatched"  # genres that the training file lacks
ACCURACY, F1, MATTHEWS = "accuracy", "f1", "matthews"
PEARSON, SPEARMAN, MAE = "pearson", "spearman", "mae"
MICRO_F1, MACRO_F1 = "micro_f1", "macro_f1"
METRICS_OF = {  # kind of labels -> default metrics
    CLASSES: (ACCURACY, MACRO_F1),
    MULTI_LABEL: (MICRO_F1, ACCURACY),
    REGRESSION: (PEARSON, SPEARMAN, MAE),
}


def _glue(
    submission: str, labelled: Schema, test: Schema, **options: bool
) -> tuple[Part, ...]:
    """The files of a task of GLUE.

    Args:
        submission: name of the predictions on the GLUE site.
        labelled: columns of train.tsv and dev.tsv.
        test: columns of test.tsv.
        **options: see `Part`, for train.tsv and dev.tsv.
    """
    return (
        Part(TRAIN, "train.tsv", schema=labelled, options=options),
        Part(DEV, "dev.tsv", schema=labelled, options=options),
        Part(TEST, "test.tsv", [], "", submission, test),
    )


_NLI = Labels(names=("contradiction", "entailment", "neutral"))
_XNLI = dataclasses.replace(_NLI, aliases=(("contradictory", "contradiction"),))
_TWO = Labels(names=("0", "1"))
_ENTAILED = Labels(names=("entailment", "not_entailment"))
_ACCURACY_F1 = (ACCURACY, F1)

# Columns of the text, the second text and the label.
_PAIR, _PAIR_TEST = columns(1, 2, -1), columns(1, 2, id=0)
_MNLI, _MNLI_TEST = columns(8, 9, -1), columns(8, 9, id=0)
_XNLI_COLUMNS = columns(6, 7, 1, language=0)  # all languages

# A new task is a new entry: its labels, metrics and files.
TASKS = {
    "cola": Data(
        _TWO,
        (MATTHEWS, ACCURACY),
        _glue(
            "CoLA",
            columns(3, label=1),
            columns("sentence", id="index"),
            header=False,
        ),
    ),
    "mnli": Data(
        _NLI,
        (ACCURACY,),
        (
            Part(TRAIN, "train.tsv", schema=_MNLI),
            Part(DEV, "dev_matched.tsv", schema=_MNLI),
            Part(DEV, "dev_mismatched.tsv", [], MISMATCHED, schema=_MNLI),
            Part(TEST, "test_matched.tsv", [], "", "MNLI-m", _MNLI_TEST),
            Part(
                TEST,
                "test_mismatched.tsv",
                [],
                MISMATCHED,
                "MNLI-mm",
                _MNLI_TEST,
            ),
        ),
    ),
    "mrpc": Data(
        _TWO,
        _ACCURACY_F1,
        _glue(
            "MRPC",
            columns(3, 4, 0),
            columns("#1 String", "#2 String", id="index"),
        ),
    ),
    "xnli": Data(
        _XNLI,
        (ACCURACY,),
        (
            Part(
                TRAIN,
                "multinli/multinli.train.{language}.tsv",
                schema=columns(0, 1, 2),
            ),
            Part(DEV, "xnli.dev.tsv", schema=_XNLI_COLUMNS),
            Part(TEST, "xnli.test.tsv", schema=_XNLI_COLUMNS),
        ),
    ),
    "sst2": Data(
        _TWO,
        (ACCURACY,),
        _glue("SST-2", columns(0, label=1), columns("sentence", id="index")),
    ),
    "qnli": Data(_ENTAILED, (ACCURACY,), _glue("QNLI", _PAIR, _PAIR_TEST)),
    "qqp": Data(
        _TWO,
        _ACCURACY_F1,
        _glue(
            "QQP",
            columns(3, 4, 5),
            columns("question1", "question2", id="id"),
            skip_invalid=True,
        ),
    ),
    "rte": Data(_ENTAILED, (ACCURACY,), _glue("RTE", _PAIR, _PAIR_TEST)),
    "wnli": Data(_TWO, (ACCURACY,), _glue("WNLI", _PAIR, _PAIR_TEST)),
    "stsb": Data(
        Labels(REGRESSION),
        METRICS_OF[REGRESSION],
        _glue("STS-B", columns(7, 8, -1), columns(7, 8, id=0)),
    ),
    "ax": Data(  # the diagnostic set, for a model trained on MNLI
        _NLI,
        (MATTHEWS, ACCURACY),
        (
            Part(
                DEV,
                "diagnostic-full.tsv",
                schema=columns("Premise", "Hypothesis", "Label"),
            ),
            Part(TEST, "diagnostic.tsv", [], "", "AX", _PAIR_TEST),
        ),
    ),
}
