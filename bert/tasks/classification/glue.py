"""The data sets with a name, GLUE and XNLI: labels, metrics and files."""

import dataclasses

from bert.data.labels import REGRESSION, Labels
from bert.data.tables import TableSchema
from bert.tasks import metrics
from bert.tasks.classification.files import (
    MISMATCHED,
    Dataset,
    Split,
    schema_of,
)
from bert.tasks.metrics import ACCURACY, F1, MATTHEWS
from bert.tasks.task import DEV, TEST, TRAIN


def _glue(
    submission: str, labelled: TableSchema, test: TableSchema, **options: bool
) -> tuple[Split, ...]:
    """The files of a task of GLUE.

    Args:
        submission: name of the predictions on the GLUE site.
        labelled: columns of train.tsv and dev.tsv.
        test: columns of test.tsv.
        **options: see `Split`, for train.tsv and dev.tsv.
    """
    return (
        Split("train.tsv", name=TRAIN, schema=labelled, options=options),
        Split("dev.tsv", name=DEV, schema=labelled, options=options),
        Split("test.tsv", name=TEST, submission=submission, schema=test),
    )


_NLI = Labels(names=("contradiction", "entailment", "neutral"))
_XNLI = dataclasses.replace(_NLI, aliases=(("contradictory", "contradiction"),))
_TWO = Labels(names=("0", "1"))
_ENTAILED = Labels(names=("entailment", "not_entailment"))
_ACCURACY_F1 = (ACCURACY, F1)

# Columns of the text, the second text and the label.
_PAIR, _PAIR_TEST = schema_of(1, 2, -1), schema_of(1, 2, id=0)
_MNLI, _MNLI_TEST = schema_of(8, 9, -1), schema_of(8, 9, id=0)
_XNLI_COLUMNS = schema_of(6, 7, 1, language=0)  # all languages

# A new task is a new entry: its labels, metrics and files.
GLUE_TASKS = {
    "cola": Dataset(
        _TWO,
        (MATTHEWS, ACCURACY),
        _glue(
            "CoLA",
            schema_of(3, label=1),
            schema_of("sentence", id="index"),
            header=False,
        ),
    ),
    "mnli": Dataset(
        _NLI,
        (ACCURACY,),
        (
            Split("train.tsv", name=TRAIN, schema=_MNLI),
            Split("dev_matched.tsv", name=DEV, schema=_MNLI),
            Split(
                "dev_mismatched.tsv",
                name=DEV,
                schema=_MNLI,
                subset=MISMATCHED,
            ),
            Split(
                "test_matched.tsv",
                name=TEST,
                submission="MNLI-m",
                schema=_MNLI_TEST,
            ),
            Split(
                "test_mismatched.tsv",
                subset=MISMATCHED,
                name=TEST,
                submission="MNLI-mm",
                schema=_MNLI_TEST,
            ),
        ),
    ),
    "mrpc": Dataset(
        _TWO,
        _ACCURACY_F1,
        _glue(
            "MRPC",
            schema_of(3, 4, 0),
            schema_of("#1 String", "#2 String", id="index"),
        ),
    ),
    "xnli": Dataset(
        _XNLI,
        (ACCURACY,),
        (
            Split(
                "multinli/multinli.train.{language}.tsv",
                name=TRAIN,
                schema=schema_of(0, 1, 2),
            ),
            Split("xnli.dev.tsv", name=DEV, schema=_XNLI_COLUMNS),
            Split("xnli.test.tsv", name=TEST, schema=_XNLI_COLUMNS),
        ),
    ),
    "sst2": Dataset(
        _TWO,
        (ACCURACY,),
        _glue(
            "SST-2", schema_of(0, label=1), schema_of("sentence", id="index")
        ),
    ),
    "qnli": Dataset(_ENTAILED, (ACCURACY,), _glue("QNLI", _PAIR, _PAIR_TEST)),
    "qqp": Dataset(
        _TWO,
        _ACCURACY_F1,
        _glue(
            "QQP",
            schema_of(3, 4, 5),
            schema_of("question1", "question2", id="id"),
            skip_invalid=True,
        ),
    ),
    "rte": Dataset(_ENTAILED, (ACCURACY,), _glue("RTE", _PAIR, _PAIR_TEST)),
    "wnli": Dataset(_TWO, (ACCURACY,), _glue("WNLI", _PAIR, _PAIR_TEST)),
    "stsb": Dataset(
        Labels(REGRESSION),
        metrics.reported(REGRESSION),
        _glue("STS-B", schema_of(7, 8, -1), schema_of(7, 8, id=0)),
    ),
    "ax": Dataset(  # the diagnostic set, for a model trained on MNLI
        _NLI,
        (MATTHEWS, ACCURACY),
        (
            Split(
                "diagnostic-full.tsv",
                name=DEV,
                schema=schema_of("Premise", "Hypothesis", "Label"),
            ),
            Split(
                "diagnostic.tsv",
                name=TEST,
                submission="AX",
                schema=_PAIR_TEST,
            ),
        ),
    ),
}
