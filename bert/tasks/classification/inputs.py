"""Reads the input files of run_classifier.py.

settings -> `tasks.classification.examples.File`s -> `Data`
"""

import dataclasses
import functools
import os
from collections.abc import Iterator

import numpy as np

from bert.common import storage
from bert.common.errors import UserError
from bert.common.progress import say
from bert.data import tables
from bert.data.label_kinds import (
    CLASSES,
    MULTI_LABEL,
    REGRESSION,
    Decision,
    Labels,
)
from bert.data.sequences import FIRST_TOKENS, MEAN, LongTexts
from bert.tasks import run_folder, training_data
from bert.tasks.classification import (
    division,
    examples,
    notes,
    trained_labels,
    weights,
)
from bert.tasks.classification.examples import File, TextExample
from bert.tasks.classification.score_settings import LOSS
from bert.tasks.classification.settings import OWN, WINDOWS, Settings
from bert.tasks.classification.tasks import (
    METRICS_OF,
    TASKS,
    ClassificationTask,
)

TRAIN, DEV, TEST = "train", "dev", "test"
_SPLIT_FLAGS = {TRAIN: "train_file", DEV: "eval_file", TEST: "predict_file"}


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """The examples of one file of the run.

    Attributes:
        split: TRAIN, DEV or TEST.
        path: the file.
        examples: its examples.
        name: "", or a name such as "mismatched" for a second file.
        submission: the name of its predictions on the GLUE site, or "".
        rows: description of the rows that were drawn from the file; "" if
            the part has all of them.
    """

    split: str
    path: str
    examples: list[TextExample]
    name: str = ""
    submission: str = ""
    rows: str = ""

    @property
    def labels(self) -> np.ndarray:
        """The labels: [N] for one label or number, int [N, C] for several."""
        labels = np.array([example.label for example in self.examples])
        return labels.astype("f4") if labels.dtype.kind == "f" else labels

    @functools.cached_property
    def digest(self) -> str:
        """The digest of the rows, see `training_data.digest_of`."""
        return training_data.digest_of(self.path, self.rows)

    @property
    def is_labelled(self) -> bool:
        """Whether the examples are labelled.

        With MULTI_LABEL, some examples may be without labels, but not all.
        """
        labels = [example.label for example in self.examples]
        if isinstance(labels[0], list):
            return any(map(any, labels))
        return None not in labels

    def file(self, stem: str, ending: str) -> str:
        """A file name such as `test_results_mismatched.tsv`."""
        return f"{stem}{'_' if self.name else ''}{self.name}{ending}"


@dataclasses.dataclass(frozen=True)
class Data:
    """All examples of the run.

    Attributes:
        labels: the labels of the task.
        metrics: see `tasks.ClassificationTask`.
        parts: the files.
        has_pairs: whether examples have two texts.
        notes: lines to print: label counts and warnings.
        class_weights: weight of each label in the training loss; () if all
            are 1.
        long_texts: long-text handling: truncation or windows.
    """

    labels: Labels
    metrics: tuple[str, ...]
    parts: tuple[Part, ...]
    has_pairs: bool
    notes: tuple[str, ...] = ()
    class_weights: tuple[float, ...] = ()
    long_texts: LongTexts = FIRST_TOKENS

    def of(self, split: str) -> list[Part]:
        """The files of a split."""
        return [part for part in self.parts if part.split == split]

    def texts(self) -> Iterator[str]:
        """Yields the text of each example."""
        for part in self.parts:
            for example in part.examples:
                yield f"{example.text} {example.text_b}"

    def describe(self) -> dict:
        """Kind and names of the labels, as in `task.json`."""
        task = {"kind": self.labels.kind, "labels": list(self.labels.names)}
        return task | ({"pairs": True} if self.has_pairs else {})

    def describe_training(self) -> dict:
        """Inference settings for `task.json`: weights, long texts."""
        weights = list(self.class_weights)
        task = self.long_texts.described()
        return task | ({"class_weights": weights} if weights else {})

    def weights_by_name(self) -> dict[str, float]:
        """Name -> weight of each label in the loss; {} if all are 1."""
        return dict(zip(self.labels.names, self.class_weights))


def read(settings: Settings) -> Data:
    """Reads and checks the input files, before the network is built.

    Args:
        settings: the settings of the script.

    Raises:
        UserError: flags contradict each other, or a file is invalid.
    """
    task = TASKS.get(settings.task) or _own_task(settings)
    if settings.glue_dir and not any(x.submission for x in task.test):
        raise UserError(
            f"--glue_dir with --task_name={settings.task_name}",
            expected="a GLUE task",
        )

    read_once = functools.cache(examples.read)  # splits may share a file
    files = [
        (split, read_once(file)) for split, file in [*_files(settings, task)]
    ]

    labels = task.labels
    for split, table in files:
        if split != TEST:
            examples.check_labelled(table, labels.kind)

    # Without --labels: the labels of the training file or of the model.
    recorded = run_folder.recorded_labels(settings)
    if labels.kind != REGRESSION and not labels.names:
        names = _names(settings, labels, dict(files).get(TRAIN), recorded)
        labels = dataclasses.replace(labels, names=names)

    settings.check_labels(labels)

    # The logits of a trained model are in the order of its labels.
    if recorded:
        trained_labels.check_weights(*recorded, labels)
        trained_labels.warn_of_share(settings, recorded[0])
    labels = _decided(settings, labels, recorded[1] if recorded else {})

    parts, lines = [], []
    of_weights = recorded[1] if recorded else {}
    class_weights = of_weights.get("class_weights", ())
    for split, whole in files:
        table = whole
        if settings.eval_share and split != TEST:
            for_training, for_evaluation = division.divide(
                table,
                settings.eval_share,
                settings.random_seed,
                by_label=labels.kind == CLASSES,
            )
            table = for_training if split == TRAIN else for_evaluation

        # Labels become numbers here, as all of them are known now.
        rows = examples.label(table, labels, needed=split != TEST)
        file = table.file
        part = Part(split, file.path, rows, file.part, file.submission)

        # Notes describe whole files; duplicates are removed below.
        if split == TRAIN and labels.kind != REGRESSION:
            lines += notes.of_labels(file.path, rows, labels)
            if given := settings.class_weights:
                class_weights = weights.of_labels(given, labels, part.labels)
                lines.append(notes.of_weights(labels, class_weights))
        lines += notes.of_texts(file.path, whole.examples)
        if split != TEST:
            lines += notes.of_copies(file.path, whole.examples)
        if split == TEST and file.label is not None and not part.is_labelled:
            lines.append(notes.of_missing_labels(file.path, rows))
        parts.append(part)

    has_pairs = settings.text_b_column is not None or any(
        file.text_b is not None for file in task.train + task.dev + task.test
    )
    long_texts = _long_texts(settings, of_weights)
    long_texts.check(has_pairs)
    return Data(
        labels,
        _metrics(settings, task),
        tuple(parts),
        has_pairs,
        (*dict.fromkeys(lines),),
        tuple(class_weights),
        long_texts,
    )


def _long_texts(settings: Settings, recorded: dict) -> LongTexts:
    """Long-text handling, from the flags or as recorded in the model."""
    before = LongTexts.of_task(recorded)
    truncate = settings.truncate or before.truncate
    if settings.long_texts == WINDOWS:
        size = settings.max_seq_length - 2
        stride = settings.doc_stride or max(1, size * 3 // 4)
        return LongTexts(truncate, settings.pool_windows or MEAN, stride)

    chosen = dataclasses.replace(before, truncate=truncate)
    return chosen.without_windows() if settings.long_texts else chosen


def _decided(settings: Settings, labels: Labels, recorded: dict) -> Labels:
    """The labels, with recorded post-processing and --unknown_below."""
    decision, given = Decision.of_task(recorded), settings.unknown_below

    # Tuned thresholds apply to logits, whatever the probability.
    if given and decision.cuts:
        raise UserError(
            f"--unknown_below={given}",
            expected="a model that was trained without --tune_thresholds",
            fix="omit it, or train again without --tune_thresholds",
        )
    if given is not None:
        decision = dataclasses.replace(decision, unknown_below=given)
    return dataclasses.replace(labels, decision=decision)


def _metrics(settings: Settings, task: ClassificationTask) -> tuple[str, ...]:
    """The metrics of the run, with --best_metric, which may be a loss."""
    best = settings.best_metric
    more = () if best in (None, LOSS, *task.metrics) else (best,)
    return task.metrics + more


def _own_task(settings: Settings) -> ClassificationTask:
    """The task of a user's tables, with the files of this run."""
    splits = _splits(settings)
    flags = settings.text_and_label(bool({*splits} - {TEST}))
    flags += (settings.text_b_column, settings.id_column, settings.group_column)
    text, label, text_b, key, group = map(tables.column_of, flags)
    delimiter = tables.delimiter_of(settings.delimiter)

    # The label is optional for prediction, the id in the other files.
    files: dict[str, tuple[File]] = {}
    for split in splits:
        optional = "label" if split == TEST else "id"
        file = File(
            _own_path(settings, split),
            text,
            text_b,
            label,
            key,
            settings.has_header,
            optional,
            delimiter=delimiter,
            group=None if split == TEST else group,
        )
        files[split] = (_lines(file) if split == TEST else file,)

    kind = CLASSES
    if settings.multi_label:
        kind = MULTI_LABEL
    elif settings.regression:
        kind = REGRESSION
    return ClassificationTask(
        **files,
        labels=Labels(
            kind, settings.label_names, separator=settings.label_separator
        ),
        metrics=METRICS_OF[kind],
    )


def _lines(file: File) -> File:
    """The file; a .txt file without columns has one text per line."""
    if not file.path.removesuffix(".gz").endswith(".txt"):
        return file
    first = tables.rows(
        file.path,
        lambda fields: [*range(len(fields))],
        False,
        delimiter=file.delimiter,
    )

    # A table: several fields, or a header with the column name.
    fields = next(first).values
    if len(fields) > 1 or fields == [file.text]:
        return file
    say(f"{file.path}: each line is a text")
    return File(file.path, 0, header=False, delimiter="\n")


def _own_path(settings: Settings, split: str) -> str:
    """The path of the user's file for a split."""
    # The training file is divided later, so both splits read it.
    if split == DEV and settings.divides:
        split = TRAIN
    return getattr(settings, _SPLIT_FLAGS[split])


def _splits(settings: Settings) -> list[str]:
    """The splits that the run reads."""
    needed = settings.needed_files
    return [split for split, flag in _SPLIT_FLAGS.items() if flag in needed]


def _files(
    settings: Settings, task: ClassificationTask
) -> Iterator[tuple[str, File]]:
    """Yields split and file of each file of the run."""
    splits = {TRAIN: task.train, DEV: task.dev, TEST: task.test}
    for split in _splits(settings):
        files = splits[split]
        if not files:
            raise UserError(
                f"--task_name={settings.task_name} has no {split} file",
                fix="omit the flag for that step; to evaluate a trained model, "
                "pass it as --init_checkpoint",
            )
        if settings.task == OWN:
            yield split, files[0]
            continue

        given = getattr(settings, _SPLIT_FLAGS[split])
        if given:  # it is recognized by its name
            names = [file.path for file in files]
            name = os.path.basename(given)
            files = [files[names.index(name) if name in names else 0]]

        for file in files:
            path = given or _path(settings, file.path, split)
            if file.part and not given and not storage.exists(path):
                say(f"{path} does not exist; skipping {file.part}")
                continue

            # XNLI's files have all languages; keep one.
            keep = file.keep
            if keep:
                keep = (keep[0], keep[1].format(language=settings.language))
            yield split, dataclasses.replace(file, path=path, keep=keep)


def _path(settings: Settings, path: str, split: str) -> str:
    """The path of a task's file in --data_dir."""
    if settings.data_dir is None:
        raise UserError(
            "no --data_dir", fix=f"pass it or --{_SPLIT_FLAGS[split]}"
        )
    language = settings.language
    if split == TRAIN:
        language = settings.train_language or language
    return os.path.join(settings.data_dir, path.format(language=language))


def _names(
    settings: Settings,
    labels: Labels,
    train: examples.Table | None,
    recorded: tuple[str, dict] | None,
) -> tuple[str, ...]:
    """Label names of a user's tables."""
    if train:
        return examples.discover(train, labels)
    if recorded is None:
        raise UserError(
            "the labels are unknown",
            path=settings.output_dir,
            expected="a trained model",
            fix="pass --labels, in the order of training",
        )
    return tuple(recorded[1]["labels"])
