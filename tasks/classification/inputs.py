"""Input files of run_classifier.py: those of a task, or the user's own.

Wiring: settings -> `tasks.classification.examples.Source`s -> records.
"""

import dataclasses
import os
from collections.abc import Iterator

import numpy as np

from common import flags, storage
from common.errors import UserError
from common.progress import say
from data import tables
from data.text import vocabulary
from tasks import records
from tasks.classification import examples, label_counts, trained_labels
from tasks.classification import metrics as glue
from tasks.classification.examples import (
    CLASSES,
    MULTI_LABEL,
    REGRESSION,
    Source,
)
from tasks.classification.settings import OWN, OwnTables, Settings
from tasks.classification.tasks import TASKS, ClassificationTask

TRAIN, DEV, TEST = "train", "dev", "test"
_RECORDS = {TRAIN: "train", DEV: "eval", TEST: "predict"}  # .tf_record
_SPLIT_FLAGS = {TRAIN: "train_file", DEV: "eval_file", TEST: "predict_file"}
_ENDINGS = (".tsv", ".csv", ".jsonl", ".parquet")


@dataclasses.dataclass(frozen=True)
class Part:
    """One file of the run.

    Attributes:
        split: TRAIN, DEV or TEST.
        name: "", or a name such as "mismatched" for a second file.
        source: the file and its columns.
        count: the number of examples.
        is_labelled: whether all examples have a label.
        submission: the name of its predictions on the GLUE site, or "".
    """

    split: str
    name: str
    source: Source
    count: int
    is_labelled: bool
    submission: str = ""

    def file(self, stem: str, ending: str) -> str:
        """A file name such as `test_results_mismatched.tsv`."""
        return f"{stem}{'_' if self.name else ''}{self.name}{ending}"


@dataclasses.dataclass(frozen=True)
class Data:
    """All files of the run, each read and checked once.

    Attributes:
        labels: the labels of the task.
        metrics: see `tasks.ClassificationTask`.
        parts: the files.
        has_pairs: whether examples have two texts.
        notes: lines to print: counts of the labels, and warnings.
    """

    labels: examples.Labels
    metrics: tuple[str, ...]
    parts: tuple[Part, ...]
    has_pairs: bool
    notes: tuple[str, ...] = ()

    def of(self, split: str) -> list[Part]:
        """The files of a split."""
        return [part for part in self.parts if part.split == split]

    def texts(self) -> Iterator[str]:
        """Yields the text of each example."""
        for part in self.parts:
            for example in examples.examples(part.source, self.labels):
                yield f"{example.text} {example.text_b}"

    def describe(self) -> dict:
        """Kind and names of the labels, as in `task.json`."""
        return {"kind": self.labels.kind, "labels": list(self.labels.names)}


def read(settings: Settings) -> Data:
    """Reads every file once, to find mistakes before any work is done.

    Raises:
        UserError: flags contradict each other, or a file is invalid.
    """
    if settings.task != OWN and settings.task not in TASKS:
        raise UserError(
            f"--task_name={settings.task_name}"
            if settings.task_name
            else "no --task_name",
            expected=f"csv or tsv for your own tables, or one of "
            f"{', '.join(TASKS)}",
        )
    if settings.task == OWN:
        task = _own_task(settings)
    else:
        task = TASKS[settings.task]
        _check_no_own_tables(settings)
    if settings.glue_dir and not task.submission:
        raise UserError(
            f"--glue_dir with --task_name={settings.task_name}",
            expected="a task of GLUE",
        )
    found = _sources(settings, task)
    labels = task.labels
    recorded = trained_labels.of_weights(settings)
    if labels.kind != REGRESSION and not labels.names:
        names = _names(settings, labels, found, recorded)
        labels = dataclasses.replace(labels, names=names)
    if recorded:
        trained_labels.check_weights(*recorded, labels)
        trained_labels.warn_of_share(settings, recorded[0])
    parts, notes = [], []
    for split, index, source in found:
        _check_whole(source, labels)
        named = split != TRAIN and len(task.parts) > 1
        submission = task.submission if split == TEST else ()
        count, unlabelled = _count(source, labels, split == TRAIN, notes)
        parts.append(
            Part(
                split,
                task.parts[index] if named else "",
                source,
                count,
                not unlabelled,
                submission[index] if index < len(submission) else "",
            )
        )
    sources = task.train + task.dev + task.test
    pairs = settings.own.text_b_column is not None or any(
        source.text_b is not None for source in sources
    )
    return Data(labels, task.metrics, tuple(parts), pairs, tuple(notes))


def _count(
    source: Source,
    labels: examples.Labels,
    is_training: bool,
    notes: list[str],
) -> tuple[int, int]:
    """Counts the examples of a file, and those without a label."""
    several = labels.kind == MULTI_LABEL
    count = unlabelled = 0
    of_labels, empty = np.zeros(labels.size, np.int64), []
    for example in examples.examples(source, labels, say):
        count += 1
        if not (example.text.strip() or example.text_b.strip()):
            empty.append(example.line)
        if example.label is None:
            unlabelled += 1
        elif several:
            of_labels += example.label
        elif labels.kind == CLASSES:
            of_labels[example.label] += 1
    if is_training and labels.kind != REGRESSION:
        notes += label_counts.describe(source.path, labels.names, of_labels)
    if empty:
        notes.append(
            f"warning: {source.path}: {len(empty):,} row"
            f"{'s' * (len(empty) != 1)} without text (lines "
            f"{tables.first_few(empty)})"
        )
    # A row may have no label of several, but not every row of a file.
    if several and not source.needs_label and not of_labels.any():
        unlabelled = count
    if unlabelled and source.label is not None:
        say(
            f"{source.path}: {unlabelled:,} of {count:,} rows have no label: "
            "not scored"
        )
    return count, unlabelled


def _check_whole(source: Source, labels: examples.Labels) -> None:
    if len(set(labels.names)) != len(labels.names):
        raise UserError("duplicate label in --labels", expected="each one once")
    examples.check_header(source, labels)


def _check_no_own_tables(settings: Settings) -> None:
    """Rejects flags that apply to the user's own tables only."""
    for one in flags.flags_of(OwnTables):
        if flags.value_of(settings.own, one) != one.default:
            raise UserError(
                f"--{one.name} with --task_name={settings.task_name}",
                expected=f"--task_name={OWN}",
            )


def _own_task(settings: Settings) -> ClassificationTask:
    """The task of the user's own tables."""
    own = settings.own
    if own.text_column is None:
        raise UserError("no --text_column", fix="name the column of the texts")
    if own.multi_label and own.regression:
        raise UserError(
            "--multi_label and --regression", expected="one of them"
        )
    if not own.label_separator:
        raise UserError("--label_separator is empty", expected="such as ','")
    if own.regression and own.labels:
        raise UserError("--regression and --labels", expected="one of them")
    columns = {
        "text": _column(own.text_column),
        "text_b": _column(own.text_b_column),
        "label": _column(own.label_column),
        "id": _column(own.id_column),
    }
    header = own.header
    if header is None:
        header = any(isinstance(column, str) for column in columns.values())
    kind = CLASSES
    if own.multi_label or own.regression:
        kind = MULTI_LABEL if own.multi_label else REGRESSION
    labels = examples.Labels(
        kind,
        tuple(x.strip() for x in own.labels or ()),
        separator=own.label_separator,
    )
    delimiter = _delimiter(own.delimiter)
    source = Source("", header=header, delimiter=delimiter, **columns)
    sources = {
        split: (_own_source(settings, split, source),)
        if _is_needed(settings, split)
        else ()
        for split in (TRAIN, DEV, TEST)
    }
    for path in (x.path for found in sources.values() for x in found):
        if tables.is_csv(path) and len(source.delimiter or ",") > 1:
            raise UserError(
                f"--delimiter={source.delimiter!r}",
                expected=f"one character for {path}",
            )
    for split in (TRAIN, DEV):
        if sources[split] and source.label is None:
            raise UserError(
                "no --label_column", fix="name the column of the labels"
            )
    test = [_lines(_unlabelled(source)) for source in sources[TEST]]
    return ClassificationTask(
        sources[TRAIN],
        sources[DEV],
        tuple(test),
        labels,
        glue.METRICS_OF[kind],
    )


def _own_source(settings: Settings, split: str, source: Source) -> Source:
    """The source of a split of the user's own files.

    Raises:
        UserError: --eval_share and --eval_file are given, or no file is.
    """
    share = settings.own.eval_share
    if split != TEST:
        source = dataclasses.replace(source, id=None)
    if not share or split == TEST:
        return dataclasses.replace(source, path=_own_file(settings, split))
    if settings.eval_file:
        raise UserError("--eval_share and --eval_file", expected="one of them")
    return dataclasses.replace(
        source,
        path=_own_file(settings, TRAIN),
        eval_share=share,
        seed=settings.tuning.training.random_seed,
        is_one_group=settings.own.regression or settings.own.multi_label,
        is_eval=split == DEV,
    )


def _lines(source: Source) -> Source:
    """The source as lines of text, if it is a .txt file without columns."""
    if not source.path.removesuffix(".gz").endswith(".txt"):
        return source
    fields = tables.header(source.path, source.delimiter)
    if len(fields) > 1 or fields == [source.text]:
        return source
    say(f"{source.path}: each line is a text")
    return Source(source.path, 0, header=False, delimiter="\n")


def _unlabelled(source: Source) -> Source:
    """The source with an optional label, or none if the column is missing."""
    if isinstance(source.label, str) and source.label in tables.header(
        source.path, source.delimiter
    ):
        return dataclasses.replace(source, needs_label=False)
    return dataclasses.replace(source, label=None)


def _delimiter(given: str | None) -> str | None:
    """The delimiter of fields; `\\t` means a tab, which is hard to type."""
    if given is None:
        return None
    delimiter = given.replace("\\t", "\t")
    if not delimiter or set(delimiter) & set('"\r\n'):
        raise UserError(
            f"--delimiter={given!r}",
            expected="characters between two fields, such as ';'",
        )
    return delimiter


def _column(text: str | None) -> tables.Column | None:
    if text is None or not text.removeprefix("-").isdecimal():
        return text
    return int(text)


def _own_file(settings: Settings, split: str) -> str:
    """The user's own file of a split."""
    given = getattr(settings, _SPLIT_FLAGS[split])
    if given:
        return given
    folder = settings.data_dir
    found = [
        path
        for ending in _ENDINGS
        for path in (f"{folder}/{split}{ending}{x}" for x in ("", ".gz"))
        if folder and storage.exists(path)
    ]
    if len(found) != 1:
        raise UserError(
            f"{len(found) or 'no'} files {split}{{{','.join(_ENDINGS)}}}[.gz]",
            path=folder,
            expected="one",
            fix=f"pass --{_SPLIT_FLAGS[split]}"
            + ", or --eval_share=0.1" * (split == DEV),
        )
    return found[0]


def _is_needed(settings: Settings, split: str) -> bool:
    tuning = settings.tuning
    wanted = {
        TRAIN: tuning.training.do_train,
        DEV: tuning.evaluates,
        TEST: tuning.do_predict,
    }
    return wanted[split]


def _sources(
    settings: Settings, task: ClassificationTask
) -> list[tuple[str, int, Source]]:
    """Split, index in the split, and source of each file of the run."""
    found = []
    for split, sources in (
        (TRAIN, task.train),
        (DEV, task.dev),
        (TEST, task.test),
    ):
        if not _is_needed(settings, split):
            continue
        if not sources:
            raise UserError(
                f"--task_name={settings.task_name} has no {split} file",
                fix="skip that step; --init_checkpoint takes a trained model",
            )
        given = getattr(settings, _SPLIT_FLAGS[split])
        only = _index_of(given, sources) if given else None
        for index, source in enumerate(sources):
            if only not in (None, index):
                continue
            path = given or _path(settings, source.path, split)
            if index and not given and not storage.exists(path):
                say(f"{path} does not exist: {task.parts[index]} is skipped")
                continue
            keep = source.keep
            if keep:
                keep = (keep[0], keep[1].format(language=settings.language))
            source = dataclasses.replace(source, path=path, keep=keep)
            found.append((split, index, source))
    return found


def _index_of(path: str, sources: tuple[Source, ...]) -> int:
    """The source of a file, by its name; 0 for a name of the user's own."""
    names = [source.path for source in sources]
    name = os.path.basename(path)
    return names.index(name) if name in names else 0


def _path(settings: Settings, path: str, split: str) -> str:
    """The path of a task's file in --data_dir; own paths are unchanged."""
    if settings.task == OWN:
        return path
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
    labels: examples.Labels,
    found: list,
    recorded: tuple[str, dict] | None,
) -> tuple[str, ...]:
    """Names of the labels of the user's own tables."""
    for split, _, source in found:
        if split == TRAIN:
            return examples.discover(source, labels)
    if recorded is None:
        raise UserError(
            "the labels are unknown",
            path=settings.tuning.training.output_dir,
            expected="a trained model",
            fix="pass --labels, in the order of training",
        )
    return tuple(recorded[1]["labels"])


def make_records(
    folder: str, settings: Settings, data: Data, part: Part
) -> str:
    """Writes the records of a file, unless they exist already.

    Warns of texts that are cut.

    Returns:
        the path of the records, in the folder.
    """
    from data.text import fast_tokenization

    text, length = settings.tuning.text, settings.tuning.max_seq_length
    path = os.path.join(folder, part.file(_RECORDS[part.split], ".tf_record"))
    lengths: list[int] = []  # of the texts that are written, in tokens

    def rows():
        tokenizer = fast_tokenization.FastTokenizer(*text.tokenizer_arguments)
        vocab = tokenizer.vocab
        yield from examples.encode(
            examples.examples(part.source, data.labels),
            tokenizer.ids_of_lines,
            (vocab[vocabulary.CLS], vocab[vocabulary.SEP]),
            length,
            data.labels,
            lengths.append,
        )

    count = records.make(
        settings,
        path,
        part.source.path,
        rows,
        examples.schema(data.labels),
        rows_of=dataclasses.asdict(part.source),
        labels=dataclasses.asdict(data.labels),
    )
    assert count == part.count, (count, part.count)
    cut = sum(tokens > length for tokens in lengths)
    if cut:
        say(
            f"warning: {part.source.path}: {cut:,} of {len(lengths):,} texts "
            f"are longer than {length} tokens (longest {max(lengths):,}) and "
            "were cut; see --max_seq_length"
        )
    return path
