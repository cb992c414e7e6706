"""Reads the input files of run_classifier.py, and checks them.

settings -> `TextClassification`, and files with their examples
"""

import dataclasses
import itertools
import math
import os
import re
import unicodedata
from collections.abc import Iterator

import numpy as np

from bert.common import storage
from bert.common.errors import UserError
from bert.common.progress import log
from bert.data import tables
from bert.data.labels import (
    CLASSES,
    MULTI_LABEL,
    REGRESSION,
    Labels,
    PostProcessing,
)
from bert.data.sequences import MEAN, LongTexts
from bert.tasks import metrics
from bert.tasks.classification import examples
from bert.tasks.classification.glue import (
    GLUE_TASKS,
    UNLABELLED,
    Dataset,
    Split,
    TextExample,
    columns,
    labels_of,
)
from bert.tasks.classification.settings import (
    BALANCED,
    OWN,
    WINDOWS,
    Settings,
)
from bert.tasks.classification.task import TextClassification
from bert.tasks.evaluation import first_names
from bert.tasks.run import Run, Trained
from bert.tasks.task import DEV, TEST, TRAIN, Files

_FEW = 5  # labels with fewer examples are reported
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
    dataset = GLUE_TASKS.get(settings.task) or _own_tables(settings)
    if settings.glue_dir and not any(x.submission for x in dataset.split(TEST)):
        raise UserError(
            f"--glue_dir with --task_name={settings.task_name}",
            expected="a GLUE task",
        )

    # Splits may share a file.
    labels, files = dataset.labels, []
    for split in _files(settings, dataset):
        found = [
            table
            for x, table in files
            if (x.path, x.schema) == (split.path, split.schema)
        ]
        table = found[0] if found else examples.read(split, settings.language)
        files.append((split, table))
        if split.is_for_labels:
            examples.check_labelled(table, labels.kind)

    # Without --labels: the labels of the training file or of the model.
    recorded = run.evaluated_task
    if labels.kind != REGRESSION and not labels.names:
        train = [table for split, table in files if split.name == TRAIN]
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
        labels.check_same(
            Labels.of_task(recorded),
            may_rename=True,
            path=run.trained and run.trained.path,
            fix="pass the flags of training, such as --multi_label; or "
            "--task_name=tsv and --labels, in the order of training",
        )
        _warn_of_other_fraction(settings, run.trained)
    labels = _with_post_processing(settings, labels, recorded or {})

    splits: Files = {name: [] for name in _FLAGS}
    lines, more_labels = [], ""
    if settings.task == OWN:  # a small training file may lack a rare label
        more_labels = (
            "to train a model with more labels, list all of them in --labels"
        )
    class_weights = (recorded or {}).get("class_weights", ())
    for file, table in files:
        # Labels become numbers here, as all of them are known now.
        rows = examples.label(table, labels, file.is_for_labels, more_labels)
        split = dataclasses.replace(file, rows=rows, sha256=table.sha256)
        if settings.divides and split.is_for_labels:
            split = examples.hold_out(settings, split, labels)
        splits[split.name].append(split)

        # Duplicates of these lines are removed below.
        if split.name == TRAIN and labels.kind != REGRESSION:
            lines += label_notes(split.path, split.rows, labels)
            if given := settings.class_weights:
                class_weights = class_weights_of(
                    given, labels, labels_of(split.rows)
                )
                lines.append(weights_note(labels, class_weights))
        lines += empty_text_notes(split.path, table.rows)
        if split.is_for_labels:
            lines += copy_notes(split.path, table.rows)
        elif "label" in table.cells and not split.is_labelled:
            lines.append(missing_labels_note(split.path, rows))

    # The training file first: baselines are fitted to its labels.
    splits[TRAIN] += splits.pop(UNLABELLED)

    has_pairs = any("text_b" in split.schema for split in dataset.splits)
    long_texts = _long_texts(settings, recorded or {})
    long_texts.check(has_pairs)

    best = settings.metric_for_best_model
    more = () if best in (None, metrics.LOSS, *dataset.metrics) else (best,)
    task = TextClassification(
        run.model.tokenizer,
        labels,
        settings.max_seq_length,
        long_texts,
        has_pairs,
        tuple(class_weights),
        dataset.metrics + more,
        best,
        settings.task,
    )

    run.check_labels(labels)
    run.warn(
        f"{row.text} {row.text_b}"
        for split in itertools.chain(*splits.values())
        for row in split.rows
    )

    for line in dict.fromkeys(lines):
        log(line)
    return task, splits


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


def _with_post_processing(
    settings: Settings, labels: Labels, recorded: dict
) -> Labels:
    """The labels, with recorded post-processing and --unknown_below."""
    decision, given = PostProcessing.of_task(recorded), settings.unknown_below

    # Tuned thresholds apply to logits, whatever the probability.
    if given and decision.thresholds:
        raise UserError(
            f"--unknown_below={given}",
            expected="a model that was trained without --tune_thresholds",
            fix="omit it, or train again without --tune_thresholds",
        )
    if given is not None:
        decision = dataclasses.replace(decision, unknown_below=given)
    return dataclasses.replace(labels, decision=decision)


def _own_tables(settings: Settings) -> Dataset:
    """The data set of a user's tables; their paths are in the flags."""
    reads_labels = bool({*_needed(settings)} - {_FLAGS[TEST]})
    header, named = settings.columns(reads_labels)
    labelled = columns(**named, optional=("id",), have_flags=True)

    # A file for prediction may lack labels: their number may be another column.
    if isinstance(named["label"], int):
        named["label"] = None
    test = columns(**named, optional=("label", "group"), have_flags=True)

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
            Split("", name=TRAIN, schema=labelled, options=options),
            Split("", name=DEV, schema=labelled, options=options),
            Split("", name=TEST, schema=test, options=lines),
        ),
    )


def _needed(settings: Settings) -> list[str]:
    """Flags of the files that the run reads."""
    names = settings.needed_files + ["eval_file"] * bool(settings.fold)
    return names + ["unlabelled_file"] * bool(settings.unlabelled_file)


def _files(settings: Settings, dataset: Dataset) -> Iterator[Split]:
    """Yields the files of the run, without their examples."""
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
        elif settings.data_dir is None:
            raise UserError("no --data_dir", fix=f"pass it or --{flag}")

        language = settings.language
        if name == TRAIN:
            language = settings.train_language or language
        for file in files:
            relative = file.path.format(language=language)
            path = given or os.path.join(settings.data_dir, relative)
            if file.subset and not given and not storage.exists(path):
                log(f"{path} does not exist; skipping {file.subset}")
                continue
            yield dataclasses.replace(file, path=path)


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


def class_weights_of(
    given: tuple[str, ...], labels: Labels, gold: np.ndarray
) -> tuple[float, ...]:
    """Computes the weight of each label.

    Balanced weights are N / (C n), as in scikit-learn, so the mean weight of
    the examples is 1. With several labels, the weight of a positive is the
    number of texts without the label, divided by the number with it.

    Args:
        given: tuple of str. The value of --class_weights: ("balanced",), or
            `name=weight` entries; other labels have the weight 1.
        labels: the labels of the task, not REGRESSION.
        gold: the training labels, int [N] or [N, C].

    Raises:
        UserError: a label is unknown, or a weight is not a positive number.
    """
    if given == (BALANCED,):
        if labels.kind == CLASSES:
            counts = np.bincount(gold, minlength=labels.size)
            rests = np.full(labels.size, len(gold) / labels.size)
        else:
            counts = gold.sum(0)
            rests = len(gold) - counts

        # A label of all texts, or without texts, keeps the weight 1.
        usable = (counts > 0) & (rests > 0)
        weights = np.where(usable, rests / np.maximum(counts, 1), 1.0)
        return tuple(weights.tolist())

    weights = dict.fromkeys(labels.names, 1.0)
    for pair in given:
        name, _, text = pair.rpartition("=")
        if name.strip() not in weights:
            raise UserError(
                f"--class_weights={pair}",
                expected=f"{BALANCED}, or name=weight with one of the names "
                f"{', '.join(labels.names[:10])}",
            )
        weights[name.strip()] = _weight(pair, text)
    return tuple(weights.values())


def _weight(pair: str, text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        raise UserError(f"--class_weights={pair}", expected="a weight above 0")
    return weight


def label_notes(
    path: str, examples: list[TextExample], labels: Labels
) -> Iterator[str]:
    """Yields the counts of the labels of a file, and warnings about them.

    Args:
        path: the file.
        examples: its examples, all with labels.
        labels: the labels of the task, not REGRESSION.
    """
    values = np.array([example.label for example in examples])
    counts = values.sum(0)
    if labels.kind == CLASSES:
        counts = np.bincount(values, minlength=labels.size)

    # The most frequent first, as a message is limited to some labels.
    common = sorted(zip(labels.names, counts, strict=True), key=lambda x: -x[1])
    shown = (f"{name} {count:,}" for name, count in common)
    yield f"labels: {first_names(shown)}"
    rare = [repr(name) for name, count in common if count < _FEW]
    if rare:
        names = first_names(rare)
        yield f"warning: {path}: fewer than {_FEW} examples of {names}"

    # Different spellings of a label would be learned as separate classes.
    spellings: dict[str, list[str]] = {}
    for name, _ in common:
        spellings.setdefault(_spelling(name), []).append(name)
    alike = [_alike(names) for names in spellings.values() if len(names) > 1]
    if alike:
        yield (
            f"warning: {path}: labels that look alike are different classes: "
            f"{first_names(alike)}; use one spelling for each label"
        )


def _spelling(name: str) -> str:
    """Normalizes a label: case, blanks, invisible characters; 1.0 is 1."""
    visible = "".join(
        x for x in name if not (x.isspace() or unicodedata.category(x) == "Cf")
    )
    plain = unicodedata.normalize("NFKC", visible).casefold()
    return re.sub(r"^([+-]?\d+)\.0+$", r"\1", plain)


def _alike(names: list[str]) -> str:
    """Joins labels that look alike; escaped if they look identical."""
    looks = {unicodedata.normalize("NFC", name) for name in names}
    show = ascii if len(looks) < len(names) else repr
    return " and ".join(map(show, names))


def weights_note(labels: Labels, weights: tuple[float, ...]) -> str:
    """The class weights in the loss, the highest first."""
    pairs = sorted(zip(labels.names, weights), key=lambda x: -x[1])
    shown = (f"{name} {x:.4g}" for name, x in pairs)
    return f"class weights: {first_names(shown)}"


def empty_text_notes(path: str, examples: list[TextExample]) -> Iterator[str]:
    """Yields a warning if some examples have no text."""
    empty = [
        example.line
        for example in examples
        if not (example.text.strip() or example.text_b.strip())
    ]
    if empty:
        s = "" if len(empty) == 1 else "s"
        yield (
            f"warning: {path}: {len(empty):,} row{s} without text (line{s} "
            f"{tables.first_few(empty)})"
        )


def copy_notes(path: str, rows: list[TextExample]) -> Iterator[str]:
    """Yields a warning if rows are copies of earlier rows.

    Args:
        path: the file.
        rows: its examples, with labels as in the file.
    """
    firsts = [rows[number] for number in examples.first_copies(rows)]
    pairs = [x for x in zip(firsts, rows) if x[0] is not x[1]]
    contradictions = [
        copy.line
        for first, copy in pairs
        if str(copy.label).strip() != str(first.label).strip()
    ]
    if pairs:
        lines = tables.first_few([copy.line for _, copy in pairs])
        copies = "copies of earlier rows (lines"
        if len(pairs) == 1:
            copies = "copy of an earlier row (line"
        more = ""
        if contradictions:
            more = (
                f", {len(contradictions):,} of them with another label (lines "
                f"{tables.first_few(contradictions)})"
            )
        yield (f"warning: {path}: {len(pairs):,} {copies} {lines}){more}")


def missing_labels_note(path: str, examples: list[TextExample]) -> str:
    """The number of examples without a label in a file for prediction."""
    count = sum(example.label is None for example in examples)
    return (
        f"{path}: {count or len(examples):,} of {len(examples):,} rows have no "
        "label; not scored"
    )
