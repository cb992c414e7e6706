"""Settings of run_classifier.py."""

import dataclasses
from collections.abc import Iterator

from bert.common import flags, outputs
from bert.common.errors import UserError
from bert.common.flags import (
    MODEL,
    OUTPUT,
    RARE,
    REQUIRED,
    TRAINING,
    BaseSettings,
    flag,
)
from bert.common.rules import at_most, excludes, needs, rule
from bert.data import table_rows, tables
from bert.data.sequences import HEAD_TAIL, MAX, MEAN, TAIL, TRUNCATIONS
from bert.tasks import recipe
from bert.tasks.classification.glue import GLUE_TASKS
from bert.tasks.classification.scoring_settings import Scoring
from bert.tasks.finetuning_settings import HELD_OUT, FineTuning, TeacherFlags
from bert.tasks.recipe import RecipeFlags

OWN = "tsv"  # --task_name for a user's tables
_OWN_KINDS = ("csv", "jsonl", "txt")  # aliases
TEXT, LABEL = "text", "label"  # fields, and their default columns
TRUNCATE, WINDOWS = "truncate", "windows"
BALANCED = "balanced"


def _check_separator(text: str) -> None:
    """Raises a UserError for an empty separator."""
    if not text:
        raise UserError("--label_separator is empty", expected="such as ','")


def _check_labels(labels: tuple[str, ...]) -> None:
    """Raises a UserError for a label that is listed twice."""
    if len({name.strip() for name in labels}) != len(labels):
        raise UserError("duplicate label in --labels", expected="each one once")


@dataclasses.dataclass(frozen=True)
class OwnTables(BaseSettings):
    """Columns and labels of a user's tables."""

    RULES = [
        excludes("multi_label", "regression"),
        excludes("eval_fraction", "num_folds", "eval_file"),
        needs("group_column", "num_folds", "eval_fraction"),
        excludes("regression", "labels"),
    ]

    text_column: str | None = flag(
        None,
        "tsv: column of the text, by name or number from 0; default: text.",
    )
    text_b_column: str | None = flag(None, "tsv: column of the second text.")
    eval_fraction: float = flag(
        0.0,
        "tsv: fraction of the training file to hold out for evaluation, "
        "instead of --eval_file; stratified by label.",
        at_least=0.0,
        at_most=0.5,
        resume=True,
    )
    group_column: str | None = flag(
        None,
        "tsv: column of groups, such as authors. --num_folds and "
        "--eval_fraction keep the texts of a group together.",
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
        parse=table_rows.delimiter_of,
        topic=RARE,
    )
    labels: tuple[str, ...] | None = flag(
        None,
        "tsv: all labels, in the order of the logits; default: sorted from "
        "the training file, or recorded in the model.",
        parse=_check_labels,
    )
    label_separator: str = flag(
        ",",
        "tsv: separator of the labels of a row (--multi_label).",
        parse=_check_separator,
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

    def column_names(
        self, reads_labels: bool
    ) -> tuple[bool, dict[str, str | int | None]]:
        """Whether line 1 has the column names, and the column of each field.

        Args:
            reads_labels: bool. Whether a file of the run needs labels. If not,
                the label has a default column only if the text has, too.
        """
        given = {
            field: tables.column_of(getattr(self, f"{field}_column"))
            for field in ("text", "text_b", "label", "id", "group")
        }
        named = any(isinstance(x, str) for x in given.values())
        header = named or given[TEXT] is None
        if self.header is not None:
            header = self.header

        # Columns without a flag.
        if header and (reads_labels or given[TEXT] is None):
            given[LABEL] = LABEL if given[LABEL] is None else given[LABEL]
        if header and given[TEXT] is None:
            given[TEXT] = TEXT
        return header, given

    @property
    def label_names(self) -> tuple[str, ...]:
        """The names in --labels, without surrounding spaces."""
        return tuple(name.strip() for name in self.labels or ())


@dataclasses.dataclass(frozen=True)
class LongTextFlags(BaseSettings):
    """Long-text handling: truncation or windows."""

    RULES = [
        needs("pool_windows", "long_texts=windows"),
        needs("doc_stride", "long_texts=windows"),
        at_most("doc_stride", lambda s: s.max_seq_length - 2, "a window"),
        excludes("long_texts=windows", f"truncate={TAIL}"),
        excludes("long_texts=windows", f"truncate={HEAD_TAIL}"),
    ]
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


def _check_task(settings: "Settings") -> Iterator[UserError]:
    """Yields errors for an unknown task, and for flags of another task."""
    if settings.dataset_name == OWN:
        yield from _check_columns(settings)
    elif settings.dataset_name not in GLUE_TASKS:
        name = settings.task_name
        yield UserError(
            f"--task_name={name}" if name else "no --task_name",
            expected="csv or tsv for your own tables, or one of "
            f"{', '.join(GLUE_TASKS)}",
        )
    else:
        for own in flags.flags_of(OwnTables):
            if getattr(settings, own.name) != own.default:
                yield UserError(
                    f"--{own.name} with --task_name={settings.task_name}",
                    expected=f"--task_name={OWN}",
                )


def _check_columns(settings: "Settings") -> Iterator[UserError]:
    """Yields an error for each missing column of a user's tables."""
    reads_labels = bool({*settings.needed_files} - {"predict_file"})
    _, columns = settings.column_names(reads_labels)
    if columns[TEXT] is None:
        yield UserError("no --text_column", fix="name the column of the texts")
    if reads_labels and columns[LABEL] is None:
        yield UserError(
            "no --label_column", fix="name the column of the labels"
        )


def _check_selection(settings: "Settings") -> None:
    """Raises a UserError for a metric that selects nothing."""
    several = settings.num_seeds > 1 or bool(settings.grid)
    if settings.metric_for_best_model and not (settings.eval_steps or several):
        raise UserError(
            f"--metric_for_best_model={settings.metric_for_best_model} "
            "has no effect",
            expected="several evaluations to select from",
            fix="pass --eval_steps or --num_seeds too",
        )


def _check_distillation(settings: "Distillation") -> Iterator[UserError]:
    """Yields an error for each flag of a loss without a teacher."""
    for name in ("distill_weight", "distill_temperature"):
        if name in settings.given and not settings.teacher:
            yield UserError(
                f"--{name} without --teacher", fix="pass --teacher too"
            )


@dataclasses.dataclass(frozen=True)
class Distillation(TeacherFlags):
    """A teacher, and the loss of its student."""

    RULES = [
        needs("unlabelled_file", "teacher"),
        rule(
            "--distill_weight and --distill_temperature need --teacher.",
            _check_distillation,
            "distill_weight=0.25",
        ),
    ]
    topic = TRAINING

    unlabelled_file: str | None = flag(
        None,
        "Texts without labels, on which the trained model learns the outputs "
        "of --teacher only.",
        path=True,
    )
    distill_weight: float = flag(
        0.5,
        "With --teacher: weight of its loss; the loss of the labels has the "
        "rest.",
        at_least=0.0,
        at_most=1.0,
        resume=True,
    )
    distill_temperature: float = flag(
        2.0,
        "With --teacher: divisor of the logits of both models in its loss.",
        at_least=0.01,
        at_most=100.0,
        resume=True,
    )


@dataclasses.dataclass(frozen=True)
class Settings(
    FineTuning, OwnTables, Scoring, LongTextFlags, Distillation, RecipeFlags
):
    """Settings of run_classifier.py."""

    RULES = [
        rule("--task_name has a name and its own flags.", _check_task),
        rule(
            "--metric_for_best_model needs several evaluations.",
            _check_selection,
            "metric_for_best_model=loss",
        ),
        *(
            excludes("num_folds", name, reason=HELD_OUT)
            for name in ("tune_thresholds", "calibrate")
        ),
        excludes("init_checkpoint", "bert_hub_module_handle"),
        needs("glue_dir", "do_predict"),
    ]
    eval_fix = "name the file, or pass --eval_fraction"

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
        parse=outputs.check_writable,
        per_worker=True,
        topic=OUTPUT,
    )
    tfidf_baseline: bool = flag(
        True,
        "Also evaluate a TF-IDF baseline: a linear model fitted to the same "
        "training examples.",
        topic=RARE,
    )

    @property
    def dataset_name(self) -> str:
        """--task_name, spelled as in `GLUE_TASKS`, or "tsv" for own tables."""
        task = (self.task_name or "").lower().replace("-", "")
        return OWN if task in _OWN_KINDS else task

    @property
    def usual_recipe(self) -> str:
        """--recipe, if it is not given."""
        return recipe.TABLE if self.dataset_name == OWN else recipe.ORIGINAL

    @property
    def divides(self) -> bool:
        """Whether rows of the training file are held out for evaluation."""
        return bool(self.eval_fraction or self.fold)

    @property
    def fits_decision(self) -> bool:
        """Whether thresholds or a temperature are fitted."""
        return self.tune_thresholds or self.calibrate

    @property
    def changes_decision(self) -> bool:
        """Whether the run records another post-processing than the model."""
        is_rejecting = self.unknown_below is not None
        return self.fits_decision or is_rejecting or bool(self.long_texts)

    @property
    def division(self) -> str:
        """Describes the training rows; "" if the flags alone choose them."""
        # Earlier versions divided the file by the seed of each run.
        if self.eval_fraction and self.split_seed != self.random_seed:
            return f"fraction of seed {self.split_seed}"
        division = super().division
        groups = f"sorted {self.group_column}" if self.group_column else None
        return division and f"{division}, {groups}"

    @property
    def file_flags(self) -> list[str]:
        """Names of the flags of files that are in no --data_dir."""
        if self.dataset_name != OWN:
            return []

        # Evaluation reads the held-out rows of the training file.
        names = self.needed_files
        if self.eval_fraction:
            names = ["train_file" if x == "eval_file" else x for x in names]
        return list(dict.fromkeys(names))
