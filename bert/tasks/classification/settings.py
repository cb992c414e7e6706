"""Settings of run_classifier.py."""

import dataclasses
from collections.abc import Iterator

from bert.common import flags
from bert.common.errors import UserError, raised_by
from bert.common.flags import (
    MODEL,
    OUTPUT,
    RARE,
    REQUIRED,
    TRAINING,
    flag,
    group,
)
from bert.data import tables
from bert.data.sequences import HEAD, MAX, MEAN, TRUNCATIONS
from bert.tasks.classification.score_settings import Scoring
from bert.tasks.classification.tasks import TASKS
from bert.tasks.finetuning_settings import FineTuning, unnamed

OWN = "tsv"  # --task_name for the user's own tables
_OWN_KINDS = ("csv", "jsonl", "txt")  # the same
TEXT, LABEL = "text", "label"  # columns, unless others are named
TRUNCATE, WINDOWS = "truncate", "windows"


@dataclasses.dataclass(frozen=True)
class OwnTables:
    """Columns and labels of the user's own tables."""

    text_column: str | None = flag(
        None,
        "tsv: column of the text, by name or number from 0; default: text.",
    )
    text_b_column: str | None = flag(None, "tsv: column of the second text.")
    eval_share: float = flag(
        0.0,
        "tsv: share of the training file to evaluate on, instead of "
        "--eval_file, drawn separately from each label.",
        at_least=0.0,
        at_most=0.5,
        resume=True,
    )
    num_folds: int = flag(
        0,
        "tsv: number of folds of the training file: of each, the scores are "
        "by a run on the others; 0: none.",
        at_least=0,
        topic=TRAINING,
    )
    group_column: str | None = flag(
        None,
        "tsv: column of groups, such as authors, whose texts stay in one fold, "
        "or on one side of --eval_share.",
        topic=RARE,
    )
    label_column: str | None = flag(
        None, "tsv: column of the label; default: label."
    )
    id_column: str | None = flag(
        None, "tsv: column of the ids in predictions and reports."
    )
    delimiter: str | None = flag(
        None,
        "tsv: delimiter of fields; default: .csv a comma, else tabs.",
        parse=tables.delimiter_of,
        topic=RARE,
    )
    labels: tuple[str, ...] | None = flag(
        None, "tsv: all labels, in order; default: those of the training file."
    )
    label_separator: str = flag(
        ",", "tsv: separator of the labels of a row.", topic=RARE
    )
    header: bool | None = flag(
        None,
        "tsv: line 1 names the columns; default: if a column has a name.",
        topic=RARE,
    )
    multi_label: bool = flag(
        False, "tsv: a row may have several labels, or none."
    )
    regression: bool = flag(False, "tsv: the labels are numbers.")

    @property
    def has_header(self) -> bool:
        """Whether line 1 names the columns, because a column has a name."""
        if self.header is not None:
            return self.header
        given = (self.text_b_column, self.label_column, self.id_column)
        columns = map(tables.column_of, (*given, self.group_column))
        text = tables.column_of(self.text_column or TEXT)
        return any(isinstance(column, str) for column in (text, *columns))

    def text_and_label(
        self, reads_labels: bool
    ) -> tuple[str | None, str | None]:
        """Columns of the text and of the label, None without one.

        Args:
            reads_labels: whether a file of the run needs labels; else a file
                whose text has another column has no label by default.
        """
        text, label = self.text_column, self.label_column
        if self.has_header and label is None and (reads_labels or not text):
            label = LABEL
        return text or (TEXT if self.has_header else None), label

    @property
    def divides(self) -> bool:
        """Whether the file of training is that of evaluation, too."""
        return bool(self.eval_share or self.num_folds)

    @property
    def label_names(self) -> tuple[str, ...]:
        """--labels, without spaces around them."""
        return tuple(name.strip() for name in self.labels or ())

    def mistakes(self, reads_labels: bool) -> Iterator[UserError]:
        """Yields missing columns, and flags that contradict each other.

        Args:
            reads_labels: whether a file of the run needs labels.
        """
        text, label = self.text_and_label(reads_labels)
        if text is None:
            yield UserError(
                "no --text_column", fix="name the column of the texts"
            )
        if reads_labels and label is None:
            yield UserError(
                "no --label_column", fix="name the column of the labels"
            )

        if self.multi_label and self.regression:
            yield UserError(
                "--multi_label and --regression", expected="one of them"
            )

        # How the file of training is divided.
        if self.num_folds == 1:
            yield UserError("--num_folds=1", expected="at least 2")
        if self.eval_share and self.num_folds:
            yield UserError(
                "--eval_share and --num_folds", expected="one of them"
            )
        if self.group_column and not self.divides:
            yield UserError(
                "--group_column without --num_folds or --eval_share",
                fix="pass one of them",
            )

        if not self.label_separator:
            yield UserError(
                "--label_separator is empty", expected="such as ','"
            )
        if self.regression and self.labels:
            yield UserError("--regression and --labels", expected="one of them")
        if len(set(self.label_names)) != len(self.label_names):
            yield UserError(
                "duplicate label in --labels", expected="each one once"
            )


@dataclasses.dataclass(frozen=True)
class Reading:
    """What is read of a text that is longer than a sequence."""

    topic = RARE

    truncate: str | None = flag(
        None,
        "What is kept of a longer text; head_tail: the first quarter and the "
        "end; default: as in the training of the model, or head.",
        choices=TRUNCATIONS,
        resume=True,
    )
    long_texts: str | None = flag(
        None,
        "What evaluation, prediction and export do with a longer text: "
        "windows: answer overlapping parts of it, and pool their logits; "
        "default: as before, or truncate.",
        choices=(TRUNCATE, WINDOWS),
    )
    pool_windows: str | None = flag(
        None,
        "How the logits of windows become those of the text; default: mean.",
        choices=(MEAN, MAX),
    )
    window_stride: int | None = flag(
        None,
        "Number of tokens between the starts of two windows; default: three "
        "quarters of a window.",
        at_least=1,
    )

    def mistakes(self, max_seq_length: int) -> Iterator[UserError]:
        """Yields flags without an effect, or that contradict each other."""
        if self.long_texts != WINDOWS:
            for name in ("pool_windows", "window_stride"):
                if value := getattr(self, name):
                    yield UserError(
                        f"--{name}={value} without --long_texts=windows",
                        fix="pass --long_texts=windows too",
                    )
            return

        if self.truncate not in (None, HEAD):
            yield UserError(
                f"--long_texts=windows and --truncate={self.truncate}",
                expected="one of them",
            )
        size = max_seq_length - 2
        if self.window_stride and self.window_stride > size:
            yield UserError(
                f"--window_stride={self.window_stride}",
                expected=f"at most a window, {size}",
            )


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of run_classifier.py."""

    finetuning: FineTuning = group(
        FineTuning,
        learning_rate={
            "several": True,
            "help": "Peak learning rate; several, such as 5e-5,3e-5,2e-5, are "
            "a run each.",
        },
        train_batch_size={
            "several": True,
            "help": "Examples of a batch, over all devices; several, such as "
            "16,32, are a run each.",
        },
    )
    task_name: str | None = flag(
        None,
        "cola, mnli, mrpc, xnli, sst2, ...; tsv, csv, jsonl or txt for your "
        "own tables, to which the flags marked `tsv:` apply.",
        topic=REQUIRED,
    )
    data_dir: str | None = flag(
        None,
        "Folder of the task's files; or pass --train_file, --eval_file and "
        "--predict_file, as far as they are used.",
        path=True,
        topic=REQUIRED,
    )
    train_file: str | None = flag(
        None, "Instead of the task's file in --data_dir.", path=True
    )
    eval_file: str | None = flag(
        None, "Instead of the task's file in --data_dir.", path=True
    )
    predict_file: str | None = flag(
        None, "Instead of the task's file in --data_dir.", path=True
    )
    own: OwnTables = group(OwnTables)
    scoring: Scoring = group(Scoring)
    reading: Reading = group(Reading)
    language: str = flag("zh", "xnli: language of the text.", topic=RARE)
    train_language: str | None = flag(
        None,
        "xnli: language of the training data; default: --language.",
        topic=RARE,
    )
    bert_hub_module_handle: str | None = flag(
        None,
        "Another name of --init_checkpoint, as in the original.",
        path=True,
        topic=MODEL,
    )
    glue_dir: str | None = flag(
        None,
        "Folder for the predictions in the format of the GLUE site.",
        path=True,
        per_worker=True,
        topic=OUTPUT,
    )
    reference: bool = flag(
        True,
        "Evaluate a linear model of the words too, fitted to the same "
        "examples of training.",
        topic=RARE,
    )
    num_seeds: int = flag(
        1,
        "Number of runs, with seeds from --random_seed on; the results are "
        "their means.",
        at_least=1,
        topic=TRAINING,
    )
    given: frozenset[str] = frozenset()
    grid: tuple[tuple[str, tuple], ...] = ()

    @property
    def task(self) -> str:
        """--task_name, spelled as in `TASKS`."""
        task = (self.task_name or "").lower().replace("-", "")
        return OWN if task in _OWN_KINDS else task

    @property
    def is_several(self) -> bool:
        """Whether the command is several runs."""
        return self.num_seeds > 1 or self.own.num_folds > 0 or bool(self.grid)

    def mistakes(self) -> Iterator[UserError]:
        """Yields the flags that contradict each other."""
        shared, reads = self.finetuning, self.finetuning.needed_files
        yield from shared.mistakes(bool(reads))
        if self.task == OWN:
            yield from self.own.mistakes(bool({*reads} - {"predict_file"}))

            # The file of training is divided.
            if self.own.divides:
                reads = ["train_file" if x == "eval_file" else x for x in reads]
            yield from unnamed({name: getattr(self, name) for name in reads})
        else:
            yield from self._mistakes_of_task()

        # Of each pair one would be ignored in silence.
        for name in ("eval_share", "num_folds"):
            if getattr(self.own, name) and self.eval_file:
                yield UserError(
                    f"--{name} and --eval_file", expected="one of them"
                )

        # Both name the initial weights.
        start = shared.training.model.init_checkpoint
        if start and self.bert_hub_module_handle:
            yield UserError(
                "--init_checkpoint and --bert_hub_module_handle",
                expected="one of them",
            )
        yield from self._mistakes_of_runs()
        yield from self.scoring.mistakes(
            shared.training.eval_steps > 0
            or self.num_seeds > 1
            or bool(self.grid),
            shared.do_eval,
        )
        yield from self.reading.mistakes(shared.max_seq_length)
        if self.glue_dir and not shared.do_predict:
            yield UserError(
                "--glue_dir without --do_predict", fix="pass --do_predict too"
            )

    def _mistakes_of_runs(self) -> Iterator[UserError]:
        """Yields flags that contradict several runs."""
        training = self.finetuning.training
        varied = {name: ",".join(map(str, x)) for name, x in self.grid}
        if self.num_seeds > 1:
            varied["num_seeds"] = str(self.num_seeds)
        if self.own.num_folds:
            varied["num_folds"] = str(self.own.num_folds)
        if not varied:
            return

        # Of runs that differ in several ways, no table would tell the best.
        names = [name for name in varied if name.startswith("num_")]
        if len(names) + bool(self.grid) > 1:
            shown = " and ".join(f"--{name}={x}" for name, x in varied.items())
            yield UserError(shown, expected="one of them")
        first, value = next(iter(varied.items()))
        if not (training.do_train and self.finetuning.do_eval):
            yield UserError(
                f"--{first}={value}", expected="--do_train --do_eval too"
            )
        if training.train_for:
            yield UserError(
                f"--{first} and --train_for", expected="one of them"
            )

        for name, values in self.grid:
            if len(set(values)) < len(values):
                yield UserError(
                    f"--{name}={varied[name]}", expected="each value once"
                )
        for size in dict(self.grid).get("train_batch_size", ())[1:]:
            yield from raised_by(training.check_micro_batches, size)

        # No fold may choose what it is scored with.
        if self.own.num_folds:
            for name in ("eval_steps", "tune_thresholds", "calibrate"):
                if flags.as_dict(self)[name]:
                    yield UserError(
                        f"--num_folds and --{name}",
                        expected="one of them: what is held out in a fold "
                        "chooses nothing",
                    )

    def _mistakes_of_task(self) -> Iterator[UserError]:
        """Yields an unknown task, and flags that are for own tables only."""
        if self.task not in TASKS:
            yield UserError(
                f"--task_name={self.task_name}"
                if self.task_name
                else "no --task_name",
                expected="csv or tsv for your own tables, or one of "
                f"{', '.join(TASKS)}",
            )
            return
        for own in flags.flags_of(OwnTables):
            if flags.value_of(self.own, own) != own.default:
                yield UserError(
                    f"--{own.name} with --task_name={self.task_name}",
                    expected=f"--task_name={OWN}",
                )
