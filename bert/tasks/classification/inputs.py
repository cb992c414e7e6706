"""Input files of run_classifier.py, of a known task or of the user.

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
        rows: a description of those that were drawn from the file; "": all.
    """

    split: str
    path: str
    examples: list[TextExample]
    name: str = ""
    submission: str = ""
    rows: str = ""

    @property
    def labels(self) -> np.ndarray:
        """The labels, in the form of `metrics.answers`."""
        labels = np.array([example.label for example in self.examples])
        return labels.astype("f4") if labels.dtype.kind == "f" else labels

    @functools.cached_property
    def digest(self) -> str:
        """See `training_data.digest_of`; several runs share it."""
        return training_data.digest_of(self.path, self.rows)

    @property
    def is_labelled(self) -> bool:
        """Whether all examples have a label.

        One may have none of several labels, but not all of them.
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
        notes: lines to print: counts of the labels, and warnings.
        class_weights: of the labels in the loss of training; (): 1.
        long_texts: what is read of longer texts.
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
        """What `task.json` has besides: what answers depend on."""
        weights = list(self.class_weights)
        task = self.long_texts.described()
        return task | ({"class_weights": weights} if weights else {})

    def weights_by_name(self) -> dict[str, float]:
        """Name -> weight of each label in the loss; {} if all are 1."""
        return dict(zip(self.labels.names, self.class_weights))


def read(settings: Settings) -> Data:
    """Reads each file once, to find mistakes before any work is done.

    Raises:
        UserError: flags contradict each other, or a file is invalid.
    """
    own = settings.own
    task = TASKS.get(settings.task) or _own_task(settings)
    if settings.glue_dir and not any(x.submission for x in task.test):
        raise UserError(
            f"--glue_dir with --task_name={settings.task_name}",
            expected="a task of GLUE",
        )

    read_once = functools.cache(examples.read)  # one for several splits
    files = [
        (split, read_once(file)) for split, file in [*_files(settings, task)]
    ]

    labels = task.labels
    for split, table in files:
        if split != TEST:
            examples.check_labelled(table, labels.kind)

    # Labels that no flag names are those of training, now or before.
    recorded = run_folder.recorded_labels(settings.finetuning.training)
    if labels.kind != REGRESSION and not labels.names:
        names = _names(settings, labels, dict(files).get(TRAIN), recorded)
        labels = dataclasses.replace(labels, names=names)

    settings.scoring.check(labels)

    # Trained weights answer in the order of their own labels.
    if recorded:
        trained_labels.check_weights(*recorded, labels)
        trained_labels.warn_of_share(settings, recorded[0])
    labels = _decided(settings, labels, recorded[1] if recorded else {})

    parts, lines = [], []
    of_weights = recorded[1] if recorded else {}
    class_weights = of_weights.get("class_weights", ())
    for split, whole in files:
        table = whole
        if own.eval_share and split != TEST:
            for_training, for_evaluation = division.divide(
                table,
                own.eval_share,
                settings.finetuning.training.random_seed,
                by_label=labels.kind == CLASSES,
            )
            table = for_training if split == TRAIN else for_evaluation

        # Fields become numbers only now that all labels are known.
        rows = examples.label(table, labels, needed=split != TEST)
        file = table.file
        part = Part(split, file.path, rows, file.part, file.submission)

        # Notes are about whole files; of a file read twice they are alike.
        if split == TRAIN and labels.kind != REGRESSION:
            lines += notes.of_labels(file.path, rows, labels)
            if given := settings.scoring.class_weights:
                class_weights = weights.of_labels(given, labels, part.labels)
                lines.append(notes.of_weights(labels, class_weights))
        lines += notes.of_texts(file.path, whole.examples)
        if split != TEST:
            lines += notes.of_copies(file.path, whole.examples)
        if split == TEST and file.label is not None and not part.is_labelled:
            lines.append(notes.of_missing_labels(file.path, rows))
        parts.append(part)

    has_pairs = own.text_b_column is not None or any(
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
    """What is read of long texts, by the flags or as before."""
    reading, before = settings.reading, LongTexts.of_task(recorded)
    truncate = reading.truncate or before.truncate
    if reading.long_texts == WINDOWS:
        size = settings.finetuning.max_seq_length - 2
        stride = reading.window_stride or max(1, size * 3 // 4)
        return LongTexts(truncate, reading.pool_windows or MEAN, stride)

    chosen = dataclasses.replace(before, truncate=truncate)
    return chosen.without_windows() if reading.long_texts else chosen


def _decided(settings: Settings, labels: Labels, recorded: dict) -> Labels:
    """The labels, with what their answers were made of so far."""
    decision, given = Decision.of_task(recorded), settings.scoring.unknown_below

    # An answer above its cut may have any probability.
    if given and decision.cuts:
        raise UserError(
            f"--unknown_below={given}",
            expected="weights without thresholds: these were tuned with "
            "--tune_thresholds",
            fix="omit it, or train again without --tune_thresholds",
        )
    if given is not None:
        decision = dataclasses.replace(decision, unknown_below=given)
    return dataclasses.replace(labels, decision=decision)


def _metrics(settings: Settings, task: ClassificationTask) -> tuple[str, ...]:
    """The metrics of the run; --best_metric is one of them, but a loss."""
    best = settings.scoring.best_metric
    more = () if best in (None, LOSS, *task.metrics) else (best,)
    return task.metrics + more


def _own_task(settings: Settings) -> ClassificationTask:
    """The task of the user's own tables, with the files of this run."""
    own, splits = settings.own, _splits(settings)
    flags = own.text_and_label(bool({*splits} - {TEST}))
    flags += (own.text_b_column, own.id_column, own.group_column)
    text, label, text_b, key, group = map(tables.column_of, flags)
    delimiter = tables.delimiter_of(own.delimiter)

    # Labels are for training and evaluation, ids for prediction.
    files: dict[str, tuple[File]] = {}
    for split in splits:
        optional = "label" if split == TEST else "id"
        file = File(
            _own_path(settings, split),
            text,
            text_b,
            label,
            key,
            own.has_header,
            optional,
            delimiter=delimiter,
            group=None if split == TEST else group,
        )
        files[split] = (_lines(file) if split == TEST else file,)

    kind = CLASSES
    if own.multi_label:
        kind = MULTI_LABEL
    elif own.regression:
        kind = REGRESSION
    return ClassificationTask(
        **files,
        labels=Labels(kind, own.label_names, separator=own.label_separator),
        metrics=METRICS_OF[kind],
    )


def _lines(file: File) -> File:
    """The file as lines of text, if it is a .txt file without columns."""
    if not file.path.removesuffix(".gz").endswith(".txt"):
        return file
    first = tables.rows(
        file.path,
        lambda fields: [*range(len(fields))],
        False,
        delimiter=file.delimiter,
    )

    # Several fields, or a header that names the column: a table.
    fields = next(first).values
    if len(fields) > 1 or fields == [file.text]:
        return file
    say(f"{file.path}: each line is a text")
    return File(file.path, 0, header=False, delimiter="\n")


def _own_path(settings: Settings, split: str) -> str:
    """The path of the user's own file of a split."""
    # The file of training is divided later, so both are one.
    if split == DEV and settings.own.divides:
        split = TRAIN
    return getattr(settings, _SPLIT_FLAGS[split])


def _splits(settings: Settings) -> list[str]:
    """The splits that the run reads."""
    needed = settings.finetuning.needed_files
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
                fix="skip that step; --init_checkpoint takes a trained model",
            )
        if settings.task == OWN:
            yield split, files[0]
            continue

        given = getattr(settings, _SPLIT_FLAGS[split])
        if given:  # its name tells which one it is
            names = [file.path for file in files]
            name = os.path.basename(given)
            files = [files[names.index(name) if name in names else 0]]

        for file in files:
            path = given or _path(settings, file.path, split)
            if file.part and not given and not storage.exists(path):
                say(f"{path} does not exist: {file.part} is skipped")
                continue

            # XNLI's files hold all languages, of which one is kept.
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
    """Names of the labels of the user's own tables."""
    if train:
        return examples.discover(train, labels)
    if recorded is None:
        raise UserError(
            "the labels are unknown",
            path=settings.finetuning.training.output_dir,
            expected="a trained model",
            fix="pass --labels, in the order of training",
        )
    return tuple(recorded[1]["labels"])
