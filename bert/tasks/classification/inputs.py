"""Reads the input files of run_classifier.py, and checks them.

settings -> data set -> tables -> labels -> files with examples -> task
"""

import dataclasses
import itertools
import os
from collections.abc import Iterator

from bert.common import storage
from bert.common.errors import UserError
from bert.common.progress import log
from bert.data.labels import (
    CLASSES,
    MULTI_LABEL,
    REGRESSION,
    Labels,
    PostProcessing,
)
from bert.data.sequences import MEAN, LongTexts
from bert.data.tables import InputFile
from bert.tasks import metrics
from bert.tasks.classification import class_weights, examples, notes
from bert.tasks.classification.files import (
    UNLABELLED,
    Dataset,
    Split,
    TextExample,
    TextRow,
    labels_of,
    schema_of,
)
from bert.tasks.classification.glue import GLUE_TASKS
from bert.tasks.classification.settings import OWN, WINDOWS, Settings
from bert.tasks.classification.task import TextClassification
from bert.tasks.run import Run, Trained
from bert.tasks.task import DEV, TEST, TRAIN, Files

_FLAGS = {
    TRAIN: "train_file",
    UNLABELLED: "unlabelled_file",
    DEV: "eval_file",
    TEST: "predict_file",
}


def read(run: Run[Settings]) -> tuple[TextClassification, Files]:
    """Reads and checks the input files, before the network is built.

    Args:
        run: Run. The run.

    Returns:
        the task of the run, and its files.

    Raises:
        UserError: flags contradict each other, or a file is invalid.
    """
    settings = run.settings
    dataset = dataset_of(settings)
    tables = read_tables(settings, dataset)
    labels = find_labels(run, dataset.labels, tables)
    labelled = [label_file(settings, *x, labels) for x in tables]
    files: Files = {
        name: [
            file
            for (split, _), file in zip(tables, labelled)
            if split.name == name
        ]
        for name in _FLAGS
    }
    weights = weights_of(run, labels, files[TRAIN])
    task = task_of(run, dataset, labels, weights)

    run.check_same_labels(labels)
    # The training file first: baselines are fitted to its labels.
    files[TRAIN] += files.pop(UNLABELLED)
    run.warn_of_vocabulary(
        f"{row.text} {row.text_b}"
        for file in itertools.chain(*files.values())
        for row in file.rows
    )
    lines = (
        notes.of_file(split.name, table, file, labels, weights)
        for (split, table), file in zip(tables, labelled)
    )
    for line in dict.fromkeys(itertools.chain(*lines)):
        log(line)
    return task, files


def dataset_of(settings: Settings) -> Dataset:
    """Returns the data set of --task_name, or of a user's own tables.

    Raises:
        UserError: --glue_dir is given for a data set without submissions.
    """
    dataset = GLUE_TASKS.get(settings.dataset_name) or _own_tables(settings)
    if settings.glue_dir and not any(x.submission for x in dataset.split(TEST)):
        raise UserError(
            f"--glue_dir with --task_name={settings.task_name}",
            expected="a GLUE task",
        )
    return dataset


def read_tables(
    settings: Settings, dataset: Dataset
) -> list[tuple[Split, InputFile[TextRow]]]:
    """Reads the files that the run needs; a file of two splits is read once.

    Returns:
        the splits and their tables, with labels as in the file.

    Raises:
        UserError: a file is missing or invalid, or lacks labels.
    """
    tables: list[tuple[Split, InputFile[TextRow]]] = []
    for split, path in _files(settings, dataset):
        same = [
            table
            for other, table in tables
            if (table.path, other.schema) == (path, split.schema)
        ]
        table = (
            same[0] if same else examples.read(path, split, settings.language)
        )
        tables.append((split, table))
        if split.is_for_labels:
            examples.check_labelled(table, dataset.labels.kind)
    return tables


def find_labels(
    run: Run[Settings],
    known: Labels,
    tables: list[tuple[Split, InputFile[TextRow]]],
) -> Labels:
    """Determines the labels of a run, with their post-processing.

    Args:
        run: Run. The run.
        known: Labels. Kind of the labels, and their names if they are known
            without the files.
        tables: the result of `read_tables`.

    Raises:
        UserError: the labels are unknown, do not fit the flags, or differ
            from those of a trained model.
    """
    settings, task_json = run.settings, run.evaluated_task_json
    labels = known
    if known.kind != REGRESSION and not known.names:
        # Without --labels, the training file or the model has them.
        train = [table for split, table in tables if split.name == TRAIN]
        if train:
            names = examples.discover(train[0], known)
        elif task_json:
            names = tuple(task_json["labels"])
        else:
            raise UserError(
                "the labels are unknown",
                path=settings.output_dir,
                expected="a trained model",
                fix="pass --labels, in the order of training",
            )
        labels = dataclasses.replace(known, names=names)
    settings.check_flags_for(labels)

    # The logits of a trained model are in the order of its labels.
    if task_json and run.trained:
        labels.check_same(
            Labels.of_task(task_json),
            may_rename=True,
            path=run.trained.path,
            fix="pass the flags of training, such as --multi_label; or "
            "--task_name=tsv and --labels, in the order of training",
        )
        _warn_of_other_fraction(settings, run.trained)
    return _with_post_processing(settings, labels, task_json or {})


def label_file(
    settings: Settings,
    split: Split,
    table: InputFile[TextRow],
    labels: Labels,
) -> InputFile[TextExample]:
    """Checks the labels of a table, and keeps the examples of its split.

    Args:
        settings: the settings of the script.
        split: TRAIN, DEV, TEST or UNLABELLED, and its columns.
        table: its rows, with labels as in the file.
        labels: the labels of the run.

    Raises:
        UserError: a label is unknown, or there are too few rows to divide.
    """
    fix = ""
    if (
        settings.dataset_name == OWN
    ):  # a small training file may lack a rare label
        fix = "to train a model with more labels, list all of them in --labels"
    rows, part = examples.label(table, labels, split.is_for_labels, fix), ""

    if settings.divides and split.is_for_labels:
        is_evaluation = split.name == DEV
        rows = examples.hold_out(
            settings, table.path, rows, labels, is_evaluation
        )
        if is_evaluation and settings.eval_fraction:
            part = f"{len(rows):,} of its rows"

    return InputFile(
        table.path, rows, table.sha256, subset=split.subset, part=part
    )


def weights_of(
    run: Run[Settings], labels: Labels, train: list[InputFile[TextExample]]
) -> tuple[float, ...]:
    """The weights of the labels in the loss of training; () if all are 1.

    A run that does not train has those that its model was trained with.

    Raises:
        UserError: --class_weights names an unknown label, or no number.
    """
    given, task_json = run.settings.class_weights, run.evaluated_task_json or {}
    if given and train:
        return class_weights.of_labels(given, labels, labels_of(train[0].rows))
    return tuple(task_json.get("class_weights", ()))


def task_of(
    run: Run[Settings],
    dataset: Dataset,
    labels: Labels,
    weights: tuple[float, ...],
) -> TextClassification:
    """Makes the task of a run.

    Args:
        run: Run. The run.
        dataset: the data set.
        labels: the labels, see `find_labels`.
        weights: their weights, see `weights_of`.

    Raises:
        UserError: windows are requested for pairs of texts.
    """
    settings = run.settings
    has_pairs = any("text_b" in split.schema for split in dataset.splits)
    long_texts = _long_texts(settings, run.evaluated_task_json or {})
    long_texts.check(has_pairs)
    best = settings.metric_for_best_model
    known = (metrics.LOSS, *dataset.metrics)
    more = (best,) if best and best not in known else ()
    return TextClassification(
        run.model.tokenizer,
        labels,
        settings.max_seq_length,
        long_texts,
        has_pairs,
        weights,
        dataset.metrics + more,
        best,
        settings.dataset_name,
    )


def _long_texts(settings: Settings, task_json: dict) -> LongTexts:
    """Long-text handling, from the flags or as recorded in the model."""
    before = LongTexts.of_task(task_json)
    truncate = settings.truncate or before.truncate
    if settings.long_texts == WINDOWS:
        size = settings.max_seq_length - 2
        stride = settings.doc_stride or max(1, size * 3 // 4)
        return LongTexts(truncate, settings.pool_windows or MEAN, stride)

    chosen = dataclasses.replace(before, truncate=truncate)
    return chosen.without_windows() if settings.long_texts else chosen


def _with_post_processing(
    settings: Settings, labels: Labels, task_json: dict
) -> Labels:
    """The labels, with recorded post-processing and --unknown_below."""
    decision, given = PostProcessing.of_task(task_json), settings.unknown_below

    # Tuned thresholds apply to logits, whatever the probability.
    if given and decision.thresholds:
        raise UserError(
            f"--unknown_below={given}",
            expected="a model that was trained without --tune_thresholds",
            fix="omit it, or train again without --tune_thresholds",
        )
    if settings.tune_thresholds and decision.unknown_below:
        log(
            "--tune_thresholds replaces the recorded --unknown_below="
            f"{decision.unknown_below}"
        )
    if given is not None:
        decision = dataclasses.replace(decision, unknown_below=given)
    return dataclasses.replace(labels, decision=decision)


def _own_tables(settings: Settings) -> Dataset:
    """The data set of a user's tables; their paths are in the flags."""
    reads_labels = bool({*_needed(settings)} - {_FLAGS[TEST]})
    header, named = settings.column_names(reads_labels)
    labelled = schema_of(**named, optional=("id",), have_flags=True)

    # A file for prediction may lack labels: their number may be another column.
    if isinstance(named["label"], int):
        named["label"] = None
    test = schema_of(**named, optional=("label", "group"), have_flags=True)

    options = {"header": header, "delimiter": settings.delimiter}
    lines = {"plain_field": "text", **options}
    kind = CLASSES
    if settings.multi_label:
        kind = MULTI_LABEL
    elif settings.regression:
        kind = REGRESSION
    return Dataset(
        Labels(kind, settings.label_names, separator=settings.label_separator),
        metrics.reported(kind),
        (
            Split("", TRAIN, labelled, options=options),
            Split("", DEV, labelled, options=options),
            Split("", TEST, test, options=lines),
        ),
    )


def _needed(settings: Settings) -> list[str]:
    """Flags of the files that the run reads."""
    names = settings.needed_files + ["eval_file"] * bool(settings.fold)
    return names + ["unlabelled_file"] * bool(settings.unlabelled_file)


def _files(settings: Settings, dataset: Dataset) -> Iterator[tuple[Split, str]]:
    """Yields the splits of the run and the paths of their files."""
    for name, flag in _FLAGS.items():
        if flag not in _needed(settings):
            continue
        files = dataset.split(name)
        if name == UNLABELLED:
            files = [x.without_labels() for x in dataset.split(TEST)][:1]
        if not files:
            raise UserError(
                f"--task_name={settings.task_name} has no {name} file",
                fix="omit the flag for that step; to evaluate a trained model, "
                "pass it as --init_checkpoint",
            )

        # The training file is divided later, so both splits read it.
        if name == DEV and settings.divides:
            flag = _FLAGS[TRAIN]
        if given := getattr(settings, flag):  # it is recognized by its name
            base = os.path.basename(given)
            files = ([x for x in files if x.path == base] or files)[:1]

        language = settings.language
        if name == TRAIN:
            language = settings.train_language or language
        for file in files:
            if given:
                path = given
            elif settings.data_dir is None:
                raise UserError("no --data_dir", fix=f"pass it or --{flag}")
            else:
                relative = file.path.format(language=language)
                path = os.path.join(settings.data_dir, relative)
            if file.subset and not given and not storage.exists(path):
                log(f"{path} does not exist; skipping {file.subset}")
                continue
            yield file, path


def _warn_of_other_fraction(settings: Settings, trained: Trained) -> None:
    """Warns if --eval_fraction may select examples used for training.

    Args:
        settings: Settings. Settings of a run that does not train.
        trained: Trained. The weights that it evaluates.
    """
    fraction = settings.eval_fraction
    if not (fraction and settings.do_eval):
        return

    # Another fraction or seed splits the file differently.
    seed, recorded = settings.random_seed, trained.recorded
    recorded_seed = recorded.get("split_seed", recorded.get("random_seed"))
    for name, value, before in (
        ("eval_fraction", fraction, recorded.get("eval_fraction")),
        ("random_seed", seed, recorded_seed),
    ):
        before = value if before is None else before
        if before != value:
            log(
                f"warning: --{name}={value}, but {trained.path} was trained "
                f"with {before}: the evaluation includes training examples"
            )
