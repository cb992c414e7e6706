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

OWN = "tsv"  # --task_name for a user's tables
_OWN_KINDS = ("csv", "jsonl", "txt")  # aliases
TEXT, LABEL = "text", "label"  # default columns
TRUNCATE, WINDOWS = "truncate", "windows"


@dataclasses.dataclass(frozen=True)
class OwnTables:
    """Columns and labels of a user's tables."""

    text_column: str | None = flag(
        None,
        "tsv: column of the text, by name or number from 0; default: text.",
    )
    text_b_column: str | None = flag(None, "tsv: column of the second text.")
    eval_share: float = flag(
        0.0,
        "tsv: fraction of the training file to hold out for evaluation, "
        "instead of --eval_file; stratified by label.",
        at_least=0.0,
        at_most=0.5,
        resume=True,
    )
    num_folds: int = flag(
        0,
        "tsv: number of cross-validation folds of the training file. 0 "
        "disables.",
        at_least=0,
        topic=TRAINING,
    )
    group_column: str | None = flag(
        None,
        "tsv: column of groups, such as authors. --num_folds and --eval_share "
        "keep the texts of a group together.",
        topic=RARE,
    )
    label_column: str | None = flag(
        None, "tsv: column of the label; default: label."
    )
    id_column: str | None = flag(
        None, "tsv: column of ids, for predictions and reports."
    )
    delimiter: str | None = flag(
        None,
        "tsv: field delimiter; default: a comma for .csv, else a tab.",
        parse=tables.delimiter_of,
        topic=RARE,
    )
    labels: tuple[str, ...] | None = flag(
        None,
        "tsv: all labels, in the order of the logits; default: sorted from "
        "the training file, or recorded in the model.",
    )
    label_separator: str = flag(
        ",",
        "tsv: separator of the labels of a row (--multi_label).",
        topic=RARE,
    )
    header: bool | None = flag(
        None,
        "tsv: line 1 has the column names; default: true if a flag gives a "
        "column by name.",
        topic=RARE,
    )
    multi_label: bool = flag(False, "tsv: a row may have any number of labels.")
    regression: bool = flag(False, "tsv: the labels are numbers.")

    @property
    def has_header(self) -> bool:
        """Whether line 1 has the column names: --header or its default."""
        if self.header is not None:
            return self.header
        given = (self.text_b_column, self.label_column, self.id_column)
        columns = map(tables.column_of, (*given, self.group_column))
        text = tables.column_of(self.text_column or TEXT)
        return any(isinstance(column, str) for column in (text, *columns))

    def text_and_label(
        self, reads_labels: bool
    ) -> tuple[str | None, str | None]:
        """Columns of the text and the label; None without a column.

        Args:
            reads_labels: bool. Whether a file of the run needs labels. If not,
                the label has a default column only if the text has, too.
        """
        text, label = self.text_column, self.label_column
        if self.has_header and label is None and (reads_labels or not text):
            label = LABEL
        return text or (TEXT if self.has_header else None), label

    @property
    def divides(self) -> bool:
        """Whether the training file is split for evaluation."""
        return bool(self.eval_share or self.num_folds)

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names in --labels, without surrounding spaces."""
        return tuple(name.strip() for name in self.labels or ())

    def mistakes(self, reads_labels: bool) -> Iterator[UserError]:
        """Yields errors for missing columns and flags in contradiction.

        Args:
            reads_labels: bool. Whether a file of the run needs labels.
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

        # Splits of the training file.
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
    """Long-text handling: truncation or windows."""

    topic = RARE

    truncate: str | None = flag(
        None,
        "Part of a longer text to keep; head_tail: the first quarter and the "
        "end. Default: as the model was trained, else head.",
        choices=TRUNCATIONS,
        resume=True,
    )
    long_texts: str | None = flag(
        None,
        "How evaluation, prediction and export handle longer texts; windows: "
        "predict overlapping windows, and pool their logits. Default: as "
        "recorded in the model, else truncate.",
        choices=(TRUNCATE, WINDOWS),
    )
    pool_windows: str | None = flag(
        None,
        "Pooling of the logits of a text's windows; default: mean.",
        choices=(MEAN, MAX),
    )
    doc_stride: int | None = flag(
        None,
        "Tokens between the starts of two windows; default: three quarters "
        "of a window.",
        at_least=1,
    )

    def mistakes(self, max_seq_length: int) -> Iterator[UserError]:
        """Yields errors for flags without effect or in contradiction.

        Args:
            max_seq_length: int. --max_seq_length.
        """
        if self.long_texts != WINDOWS:
            for name in ("pool_windows", "doc_stride"):
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
        if self.doc_stride and self.doc_stride > size:
            yield UserError(
                f"--doc_stride={self.doc_stride}",
                expected=f"at most a window, {size}",
            )


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of run_classifier.py."""

    finetuning: FineTuning = group(
        FineTuning,
        learning_rate={
            "several": True,
            "help": "Peak learning rate. A comma-separated list, such as "
            "5e-5,3e-5,2e-5, trains one run per value.",
        },
        train_batch_size={
            "several": True,
            "help": "Batch size, over all devices. A comma-separated list, "
            "such as 16,32, trains one run per value.",
        },
    )
    task_name: str | None = flag(
        None,
        "cola, mnli, mrpc, xnli, sst2, ...; or tsv, csv, jsonl or txt for your "
        "own tables (see the flags marked `tsv:`).",
        topic=REQUIRED,
    )
    data_dir: str | None = flag(
        None,
        "Folder of the task's files. Alternatively pass --train_file, "
        "--eval_file and --predict_file.",
        path=True,
        topic=REQUIRED,
    )
    train_file: str | None = flag(
        None,
        "File for --do_train; default: the task's file in --data_dir.",
        path=True,
    )
    eval_file: str | None = flag(
        None,
        "File for --do_eval; default: the task's file in --data_dir.",
        path=True,
    )
    predict_file: str | None = flag(
        None,
        "File for --do_predict; default: the task's file in --data_dir.",
        path=True,
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
        "Alias of --init_checkpoint, as in the original.",
        path=True,
        topic=MODEL,
    )
    glue_dir: str | None = flag(
        None,
        "Folder for predictions in the format of the GLUE website.",
        path=True,
        per_worker=True,
        topic=OUTPUT,
    )
    reference: bool = flag(
        True,
        "Also evaluate a TF-IDF baseline: a linear model fitted to the same "
        "training examples.",
        topic=RARE,
    )
    num_seeds: int = flag(
        1,
        "Number of runs, with consecutive seeds from --random_seed on. The "
        "results are their means.",
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
        """Whether the command trains several runs."""
        return self.num_seeds > 1 or self.own.num_folds > 0 or bool(self.grid)

    def mistakes(self) -> Iterator[UserError]:
        """Yields errors for missing flags and flags in contradiction."""
        shared, reads = self.finetuning, self.finetuning.needed_files
        yield from shared.mistakes(bool(reads))
        if self.task == OWN:
            yield from self.own.mistakes(bool({*reads} - {"predict_file"}))

            # Evaluation reads the held-out rows of the training file.
            if self.own.divides:
                reads = ["train_file" if x == "eval_file" else x for x in reads]
            yield from unnamed({name: getattr(self, name) for name in reads})
        else:
            yield from self._mistakes_of_task()

        # One of the two would be silently ignored.
        for name in ("eval_share", "num_folds"):
            if getattr(self.own, name) and self.eval_file:
                yield UserError(
                    f"--{name} and --eval_file", expected="one of them"
                )

        # Both are the initial checkpoint.
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
        """Yields errors for flags that do not apply to several runs."""
        training = self.finetuning.training
        varied = {name: ",".join(map(str, x)) for name, x in self.grid}
        if self.num_seeds > 1:
            varied["num_seeds"] = str(self.num_seeds)
        if self.own.num_folds:
            varied["num_folds"] = str(self.own.num_folds)
        if not varied:
            return

        # Only one of seeds, folds and a grid may vary.
        names = [name for name in varied if name.startswith("num_")]
        if len(names) + bool(self.grid) > 1:
            shown = " and ".join(f"--{name}={x}" for name, x in varied.items())
            yield UserError(shown, expected="one of them")
        first, value = next(iter(varied.items()))
        if not (training.do_train and self.finetuning.do_eval):
            yield UserError(
                f"--{first}={value}", expected="--do_train and --do_eval too"
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

        # The held-out fold must not select or tune the model it evaluates.
        if self.own.num_folds:
            for name in ("eval_steps", "tune_thresholds", "calibrate"):
                if flags.as_dict(self)[name]:
                    yield UserError(
                        f"--num_folds and --{name}",
                        expected="one of them: a held-out fold must not "
                        "select or tune its own model",
                    )

    def _mistakes_of_task(self) -> Iterator[UserError]:
        """Yields errors for an unknown task and for flags of tables."""
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
