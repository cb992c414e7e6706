"""Reads the input files of run_classifier.py.

settings -> `Data`: labels, metrics and the files with their examples
"""

import dataclasses
import os
from collections.abc import Iterator

from bert.common import storage
from bert.common.errors import UserError
from bert.common.progress import say
from bert.data.label_kinds import (
    CLASSES,
    MULTI_LABEL,
    REGRESSION,
    Decision,
    Labels,
)
from bert.data.sequences import MEAN, LongTexts
from bert.tasks.classification import (
    division,
    examples,
    notes,
    trained_labels,
    weights,
)
from bert.tasks.classification.examples import (
    DEV,
    TEST,
    TRAIN,
    Data,
    Part,
    columns,
)
from bert.tasks.classification.score_settings import LOSS
from bert.tasks.classification.settings import WINDOWS, Settings
from bert.tasks.classification.tasks import METRICS_OF, TASKS
from bert.tasks.run_folder import RunFolder

_FLAGS = {TRAIN: "train_file", DEV: "eval_file", TEST: "predict_file"}


def read(folder: RunFolder) -> Data:
    """Reads and checks the input files, before the network is built.

    Args:
        folder: the folder of the run, with the settings of the script.

    Raises:
        UserError: flags contradict each other, or a file is invalid.
    """
    settings = folder.settings
    task = TASKS.get(settings.task) or _own_task(settings)
    if settings.glue_dir and not any(x.submission for x in task.of(TEST)):
        raise UserError(
            f"--glue_dir with --task_name={settings.task_name}",
            expected="a GLUE task",
        )

    # Splits may share a file.
    labels, files = task.labels, []
    for part in _files(settings, task):
        found = [
            table
            for x, table in files
            if (x.path, x.schema) == (part.path, part.schema)
        ]
        table = found[0] if found else examples.read(part, settings.language)
        files.append((part, table))
        if part.split != TEST:
            examples.check_labelled(table, labels.kind)

    # Without --labels: the labels of the training file or of the model.
    recorded = None if settings.do_train else folder.task
    if labels.kind != REGRESSION and not labels.names:
        train = [table for part, table in files if part.split == TRAIN]
        if train:
            names = examples.discover(train[0], labels)
        elif recorded:
            names = tuple(recorded["labels"])
        else:
            raise UserError(
                "the labels are unknown",
                path=settings.output_dir,
                expected="a trained model",
                fix="pass --labels, in the order of training",
            )
        labels = dataclasses.replace(labels, names=names)

    settings.check_labels(labels)

    # The logits of a trained model are in the order of its labels.
    if recorded:
        trained_labels.check_weights(folder.trained, recorded, labels)
        trained_labels.warn_of_share(folder)
    labels = _decided(settings, labels, recorded or {})

    parts, lines = [], []
    of_weights = recorded or {}
    class_weights = of_weights.get("class_weights", ())
    for file, table in files:
        # Labels become numbers here, as all of them are known now.
        rows = examples.label(table, labels, needed=file.split != TEST)
        part = dataclasses.replace(file, examples=rows, sha256=table.sha256)
        if settings.divides and part.split != TEST:
            part = division.hold_out(settings, part, labels)
        parts.append(part)

        # Duplicates of these lines are removed below.
        if part.split == TRAIN and labels.kind != REGRESSION:
            lines += notes.of_labels(part.path, part.examples, labels)
            if given := settings.class_weights:
                class_weights = weights.of_labels(given, labels, part.labels)
                lines.append(notes.of_weights(labels, class_weights))
        lines += notes.of_texts(part.path, table.rows)
        if part.split != TEST:
            lines += notes.of_copies(part.path, table.rows)
        elif "label" in table.cells and not part.is_labelled:
            lines.append(notes.of_missing_labels(part.path, rows))

    has_pairs = any("text_b" in part.schema for part in task.parts)
    long_texts = _long_texts(settings, of_weights)
    long_texts.check(has_pairs)
    best = settings.best_metric
    more = () if best in (None, LOSS, *task.metrics) else (best,)
    data = Data(
        labels,
        task.metrics + more,
        tuple(parts),
        has_pairs,
        (*dict.fromkeys(lines),),
        tuple(class_weights),
        long_texts,
    )
    folder.check_labels(data.describe())
    folder.warn(data.texts())
    return data


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


def _own_task(settings: Settings) -> Data:
    """The task of a user's tables; their paths are in the flags."""
    reads_labels = bool({*_needed(settings)} - {_FLAGS[TEST]})
    header, named = settings.columns(reads_labels)
    labelled = columns(**named, optional=("id",))

    # A file for prediction may lack labels: their number may be another column.
    if isinstance(named["label"], int):
        named["label"] = None
    test = columns(**named, optional=("label", "group"))

    options = {"header": header, "delimiter": settings.delimiter}
    lines = {"plain_field": "text", **options}
    kind = CLASSES
    if settings.multi_label:
        kind = MULTI_LABEL
    elif settings.regression:
        kind = REGRESSION
    return Data(
        Labels(kind, settings.label_names, separator=settings.label_separator),
        METRICS_OF[kind],
        (
            Part(TRAIN, "", schema=labelled, options=options),
            Part(DEV, "", schema=labelled, options=options),
            Part(TEST, "", schema=test, options=lines),
        ),
    )


def _needed(settings: Settings) -> list[str]:
    """Flags of the files that the run reads."""
    return settings.needed_files + ["eval_file"] * bool(settings.fold)


def _files(settings: Settings, task: Data) -> Iterator[Part]:
    """Yields the files of the run, without their examples."""
    for split, flag in _FLAGS.items():
        if flag not in _needed(settings):
            continue
        files = task.of(split)
        if not files:
            raise UserError(
                f"--task_name={settings.task_name} has no {split} file",
                fix="omit the flag for that step; to evaluate a trained model, "
                "pass it as --init_checkpoint",
            )

        # The training file is divided later, so both splits read it.
        if split == DEV and settings.divides:
            flag = _FLAGS[TRAIN]
        if given := getattr(settings, flag):  # it is recognized by its name
            name = os.path.basename(given)
            files = ([x for x in files if x.path == name] or files)[:1]
        elif settings.data_dir is None:
            raise UserError("no --data_dir", fix=f"pass it or --{flag}")

        language = settings.language
        if split == TRAIN:
            language = settings.train_language or language
        for file in files:
            name = file.path.format(language=language)
            path = given or os.path.join(settings.data_dir, name)
            if file.name and not given and not storage.exists(path):
                say(f"{path} does not exist; skipping {file.name}")
                continue
            yield dataclasses.replace(file, path=path)
