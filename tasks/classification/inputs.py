"""What run_classifier.py trains on: a task's files, or the user's own.

It is wiring: flags -> `tasks.classification.examples.Source`s -> records.
"""

import dataclasses
import os
from collections.abc import Iterator

from absl import flags

from common.errors import UserError
from common.progress import say
from common.storage import sync_and_hash
from data import tables
from data.text import vocabulary
from modeling.formats import model_folder
from tasks.classification import examples
from tasks.classification import metrics as glue
from tasks.classification.examples import (
    CLASSES,
    MULTI_LABEL,
    REGRESSION,
    Source,
)

TRAIN, DEV, TEST = "train", "dev", "test"
_RECORDS = {TRAIN: "train", DEV: "eval", TEST: "predict"}  # .tf_record
_SPLIT_FLAGS = {TRAIN: "train_file", DEV: "eval_file", TEST: "predict_file"}
_ENDINGS = (".tsv", ".csv", ".jsonl")
OWN = "tsv"  # name of the task of one's own files


@dataclasses.dataclass(frozen=True)
class Task:
    """A task of the table.

    Attributes:
        train: its files; paths are inside --data_dir, `{language}` is
            replaced.
        dev, test: more than one have names, see `parts`.
        labels: what a label may be.
        metrics: what is told; the first chooses the best checkpoint.
        parts: of several dev and test files, the name of each.
        submission: names of the test files' answers on the GLUE site.
    """

    train: tuple[Source, ...] = ()
    dev: tuple[Source, ...] = ()
    test: tuple[Source, ...] = ()
    labels: examples.Labels = examples.Labels()
    metrics: tuple[str, ...] = (glue.ACCURACY,)
    parts: tuple[str, ...] = ("",)
    submission: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Part:
    """One file of the run.

    Attributes:
        split: TRAIN, DEV or TEST.
        name: "" or, of the second of several files, such as "mismatched".
        source: the file.
        count: its examples.
        is_labelled: all of them have a label.
        submission: name of its answers on the GLUE site, or "".
    """

    split: str
    name: str
    source: Source
    count: int
    is_labelled: bool
    submission: str = ""

    def file(self, stem: str, ending: str) -> str:
        """Such as `test_results.tsv`, `test_results_mismatched.tsv`."""
        return f"{stem}{'_' if self.name else ''}{self.name}{ending}"


@dataclasses.dataclass(frozen=True)
class Data:
    """All files of the run, each read once and found whole."""

    labels: examples.Labels
    metrics: tuple[str, ...]
    parts: tuple[Part, ...]
    has_pairs: bool

    def of(self, split: str) -> list[Part]:
        """The files of a split."""
        return [part for part in self.parts if part.split == split]

    def texts(self) -> Iterator[str]:
        """Yields the text of each example."""
        for part in self.parts:
            for example in examples.examples(part.source, self.labels):
                yield f"{example.text} {example.text_b}"

    def describe(self) -> dict:
        """What a trained network belongs to, as JSON values."""
        return {"kind": self.labels.kind, "labels": list(self.labels.names)}


def define_flags(values: flags.FlagValues) -> None:
    """Defines the flags that say what the examples are."""
    for name, meaning in (
        ("data_dir", "Folder of the task's files."),
        ("task_name", "cola, mnli, mrpc, xnli, sst2, ...; tsv for your own."),
        ("train_file", "Instead of the task's file in --data_dir."),
        ("eval_file", "Instead of the task's file in --data_dir."),
        ("predict_file", "Instead of the task's file in --data_dir."),
        ("text_column", "tsv: column of the text, by name or number from 0."),
        ("text_b_column", "tsv: column of the second text."),
        ("label_column", "tsv: column of the label."),
        ("id_column", "tsv: column that names a row in the predictions."),
        ("delimiter", "tsv: between fields; default: .csv a comma, else tabs."),
    ):
        flags.DEFINE_string(name, None, meaning, flag_values=values)
    flags.DEFINE_string(
        "language", "zh", "xnli: language of the text.", flag_values=values
    )
    flags.DEFINE_string(
        "train_language",
        None,
        "xnli: language that is trained on; default: --language.",
        flag_values=values,
    )
    flags.DEFINE_list(
        "labels",
        None,
        "tsv: all labels, in order; default: those of the training file.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "label_separator", ",", "Between labels of a row.", flag_values=values
    )
    flags.DEFINE_bool(
        "header",
        None,
        "tsv: line 1 names the columns; default: if a column has a name.",
        flag_values=values,
    )
    for name, meaning in (
        ("multi_label", "tsv: a row may have several labels, or none."),
        ("regression", "tsv: the labels are numbers."),
    ):
        flags.DEFINE_bool(name, False, meaning, flag_values=values)


def read(values: flags.FlagValues, tasks: dict[str, Task]) -> Data:
    """Reads every file once; what is wrong in any is told before work.

    Raises:
        UserError: flags that do not go together, or a file's mistake.
    """
    name = (values.task_name or "").lower().replace("-", "")
    if name != OWN and name not in tasks:
        raise UserError(
            f"--task_name={values.task_name!r}",
            expected=f"one of {', '.join([*tasks, OWN])}",
        )
    task = _own_task(values) if name == OWN else tasks[name]
    if name != OWN:
        _check_no_own_flags(values)
    found = _sources(values, task)
    labels = task.labels
    if labels.kind != REGRESSION and not labels.names:
        labels = dataclasses.replace(labels, names=_names(values, found))
    parts = []
    for split, index, source in found:
        _check_whole(source, labels)
        named = split != TRAIN and len(task.parts) > 1
        submission = task.submission if split == TEST else ()
        count, unlabelled = _count(source, labels)
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
    pairs = any(source.text_b is not None for source in sources)
    return Data(labels, task.metrics, tuple(parts), pairs)


def _count(source: Source, labels: examples.Labels) -> tuple[int, int]:
    """Reads a file: its examples, and those without a label."""
    count = unlabelled = 0
    for example in examples.examples(source, labels, say):
        count += 1
        unlabelled += example.label is None
    if unlabelled and source.label is not None:
        say(
            f"{source.path}: {unlabelled:,} of {count:,} rows have no label: "
            "no scores"
        )
    return count, unlabelled


def _check_whole(source: Source, labels: examples.Labels) -> None:
    if len(set(labels.names)) != len(labels.names):
        raise UserError("--labels names one twice", expected="each once")
    examples.check_header(source, labels)


def _check_no_own_flags(values: flags.FlagValues) -> None:
    """Refuses flags that only --task_name=tsv heeds."""
    for name in (
        "text_column",
        "text_b_column",
        "label_column",
        "id_column",
        "delimiter",
        "labels",
        "header",
        "multi_label",
        "regression",
    ):
        if values[name].value not in (None, False):
            raise UserError(
                f"--{name} with --task_name={values.task_name}",
                expected=f"--task_name={OWN}",
            )


def _own_task(values: flags.FlagValues) -> Task:
    """The task of the user's own columns."""
    if values.text_column is None:
        raise UserError(f"--task_name={OWN}", fix="pass --text_column")
    if values.multi_label and values.regression:
        raise UserError("--multi_label and --regression", expected="one")
    if values.regression and values.labels:
        raise UserError("--regression and --labels", expected="one")
    columns = {
        field: _column(values[f"{field}_column"].value)
        for field in ("text", "text_b", "label", "id")
    }
    header = values.header
    if header is None:
        header = any(isinstance(column, str) for column in columns.values())
    kind = CLASSES
    if values.multi_label or values.regression:
        kind = MULTI_LABEL if values.multi_label else REGRESSION
    labels = examples.Labels(
        kind,
        tuple(x.strip() for x in values.labels or ()),
        separator=values.label_separator,
    )
    source = Source("", header=header, delimiter=_delimiter(values), **columns)
    sources = {
        split: (dataclasses.replace(source, path=_own_file(values, split)),)
        if _is_needed(values, split)
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
            raise UserError("no --label_column", fix="name the label's column")
    test = [_unlabelled(source) for source in sources[TEST]]
    return Task(
        sources[TRAIN],
        sources[DEV],
        tuple(test),
        labels,
        glue.METRICS_OF[kind],
    )


def _unlabelled(source: Source) -> Source:
    """The source without a label; if its header has the column, optional."""
    if isinstance(source.label, str) and source.label in tables.header(
        source.path, source.delimiter
    ):
        return dataclasses.replace(source, needs_label=False)
    return dataclasses.replace(source, label=None)


def _delimiter(values: flags.FlagValues) -> str | None:
    """What separates fields; `\\t` is a tab, which is hard to type."""
    if values.delimiter is None:
        return None
    delimiter = values.delimiter.replace("\\t", "\t")
    if not delimiter or set(delimiter) & set('"\r\n'):
        raise UserError(
            f"--delimiter={values.delimiter!r}",
            expected="what stands between fields, such as ';'",
        )
    return delimiter


def _column(text: str | None) -> tables.Column | None:
    if text is None or not text.removeprefix("-").isdecimal():
        return text
    return int(text)


def _own_file(values: flags.FlagValues, split: str) -> str:
    """The file of a split of the user's own."""
    given = values[_SPLIT_FLAGS[split]].value
    if given:
        return given
    found = [
        path
        for ending in _ENDINGS
        for path in (
            f"{values.data_dir}/{split}{ending}{x}" for x in ("", ".gz")
        )
        if values.data_dir and os.path.exists(path)
    ]
    if len(found) != 1:
        raise UserError(
            f"{len(found) or 'no'} files {split}{{{','.join(_ENDINGS)}}}[.gz]",
            path=values.data_dir,
            expected="one",
            fix=f"pass --{_SPLIT_FLAGS[split]}",
        )
    return found[0]


def _is_needed(values: flags.FlagValues, split: str) -> bool:
    wanted = {
        TRAIN: values.do_train,
        DEV: values.do_eval,
        TEST: values.do_predict,
    }
    return wanted[split]


def _sources(
    values: flags.FlagValues, task: Task
) -> list[tuple[str, int, Source]]:
    """Split, number and file of what the run needs."""
    found = []
    for split, sources in (
        (TRAIN, task.train),
        (DEV, task.dev),
        (TEST, task.test),
    ):
        if not _is_needed(values, split):
            continue
        if not sources:
            raise UserError(
                f"--task_name={values.task_name} has no {split} file",
                fix="run without it; --init_checkpoint takes a trained model",
            )
        given = values[_SPLIT_FLAGS[split]].value
        for index, source in enumerate(sources[: 1 if given else None]):
            path = given or _path(values, source.path, split)
            if index and not os.path.exists(path):
                say(f"{path} is not there: {task.parts[index]} is left out")
                continue
            keep = source.keep
            if keep:
                keep = (keep[0], keep[1].format(language=values.language))
            source = dataclasses.replace(source, path=path, keep=keep)
            found.append((split, index, source))
    return found


def _path(values: flags.FlagValues, path: str, split: str) -> str:
    """A path of the table in --data_dir; the user's own as it is."""
    if values.task_name.lower() == OWN:
        return path
    if values.data_dir is None:
        raise UserError("no --data_dir", fix=f"or --{_SPLIT_FLAGS[split]}")
    language = values.language
    if split == TRAIN:
        language = values.train_language or language
    return os.path.join(values.data_dir, path.format(language=language))


def _names(values: flags.FlagValues, found: list) -> tuple[str, ...]:
    """The labels of the user's own task."""
    for split, _, source in found:
        if split == TRAIN:
            kind = MULTI_LABEL if values.multi_label else CLASSES
            labels = examples.Labels(kind, separator=values.label_separator)
            return examples.discover(source, labels)
    recorded = model_folder.recorded_task(values.output_dir)
    if recorded is None and values.init_checkpoint:
        recorded = model_folder.task_of(values.init_checkpoint)
    if recorded is None:
        raise UserError(
            "the labels are not known",
            path=values.output_dir,
            expected="a trained model",
            fix="pass --labels, in the order of training",
        )
    return tuple(recorded["labels"])


def schema(labels: examples.Labels) -> dict:
    """Features of the records, as `data.records.example_files` wants them."""
    from data.records import example_files

    return {
        name: example_files.Feature(kind, size=size)
        for name, (kind, size) in examples.label_schema(labels).items()
    }


def make_records(values: flags.FlagValues, data: Data, part: Part) -> str:
    """Writes the records of a file, unless they are there already.

    Returns:
        their path, in output_dir.
    """
    from data.records import example_files
    from data.text import fast_tokenization

    stem = _RECORDS[part.split]
    path = os.path.join(values.output_dir, part.file(stem, ".tf_record"))
    settings = {
        "source": dataclasses.asdict(part.source),
        "sha256": sync_and_hash(part.source.path),
        "labels": dataclasses.asdict(data.labels),
        "vocabulary": vocabulary.vocabulary_hash(values.vocab_file),
        "do_lower_case": values.do_lower_case,
        "strip_accents": values.strip_accents,
        "max_seq_length": values.max_seq_length,
    }
    if example_files.current_count(path, settings) is None:
        tokenizer = fast_tokenization.FastTokenizer(
            values.vocab_file, values.do_lower_case, values.strip_accents
        )
        vocab = tokenizer.vocab
        rows = examples.rows(
            examples.examples(part.source, data.labels),
            tokenizer.ids_of_lines,
            (vocab[vocabulary.CLS], vocab[vocabulary.SEP]),
            values.max_seq_length,
            data.labels,
        )
        count = example_files.write(
            path, rows, schema(data.labels), values.max_seq_length, settings
        )
        assert count == part.count, (count, part.count)
        say(f"wrote {count:,} examples to {path}")
    return path


def rows(values: flags.FlagValues, data: Data, path: str) -> Iterator[dict]:
    """Yields the rows of a file of records."""
    from data.records import example_files

    return example_files.read(path, schema(data.labels), values.max_seq_length)
