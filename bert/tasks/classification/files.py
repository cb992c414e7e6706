"""Files of run_classifier.py: their splits, columns and labels.

Split         a file of a data set: its columns
Dataset       labels, metrics and splits of a data set
LabelledFile  a file of a run, with its examples
"""

import dataclasses
from collections.abc import Container, Mapping
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bert.common.formats.json_files import Json
from bert.data import tables
from bert.data.labels import Labels
from bert.data.tables import Column, TableSchema
from bert.tasks.task import DEV, TRAIN, InputFile

UNLABELLED = "unlabelled"  # texts for a teacher
MISMATCHED = "mismatched"  # genres that the training file lacks
_KINDS = {"label": None, "group": tables.optional_text}


class TextExample(NamedTuple):
    """One or two texts with their label.

    Attributes:
        id: the id in the file, or the number of the example from 0.
        text: the first text.
        text_b: the second text, or "".
        label: the id of the class; a list of C zeros and ones; a number; or
            None if the example has no label. In a `Table`, the field.
        line: the first line of the example in the file, from 1.
        group: examples of a group stay in the same split; "" for no group.
        language: the language in XNLI's files, else "".
        weight: the weight of the example in scores.
    """

    id: str = ""
    text: str = ""
    text_b: str = ""
    label: Json = None
    line: int = 0
    group: str = ""
    language: str = ""
    weight: float = 1.0


def columns(
    text: str | int | None,
    text_b: str | int | None = None,
    label: str | int | None = None,
    *,
    optional: Container[str] = (),
    have_flags: bool = False,
    **named: str | int | None,
) -> TableSchema:
    """Makes the schema of a file of `TextExample`s.

    Args:
        text, text_b, label: str, int or None. Columns, see `tables.Column`;
            None for a field without a column.
        optional: container of str. Fields whose columns may be missing.
        have_flags: bool. Whether each column has a flag, such as
            `--text_column`, which messages name. Default: False.
        **named: str, int or None. Columns of `id`, `group` and `language`.
    """
    given = {"text": text, "text_b": text_b, "label": label, **named}
    return {
        field: Column(
            name,
            _KINDS.get(field, tables.text),
            field in optional,
            f"{field}_column" if have_flags else "",
        )
        for field, name in given.items()
        if name is not None
    }


class Split(NamedTuple):
    """Description of a file of a data set.

    Attributes:
        path: str. Its path, relative to --data_dir; `{language}` is a
            placeholder. "" if only a flag names the file.
        name: str. TRAIN, DEV, TEST or UNLABELLED.
        schema: TableSchema. Its columns, see `columns`.
        subset: str. Name of a second file of the same kind. Default: "".
        submission: str. Name of its predictions on the GLUE site, or "".
            Default: "".
        options: dict. More arguments of `Table.read`. Default: {}.
    """

    path: str
    name: str
    schema: TableSchema
    subset: str = ""
    submission: str = ""
    options: Mapping[str, Json] = {}

    @property
    def is_for_labels(self) -> bool:
        """Whether the examples are read with their labels."""
        return self.name in (TRAIN, DEV)

    def without_labels(self) -> Self:
        """Returns the file for reading without labels, ids and groups."""
        dropped = ("label", "id", "group")
        schema = {k: x for k, x in self.schema.items() if k not in dropped}
        return self._replace(name=UNLABELLED, schema=schema)


@dataclasses.dataclass(frozen=True, eq=False)
class LabelledFile(InputFile[TextExample]):
    """A file of a run with its `TextExample`s, whose labels are checked.

    Attributes:
        name: str. TRAIN, DEV, TEST or UNLABELLED.
        submission: str. Name of its predictions on the GLUE site, or "".
    """

    name: str = ""
    submission: str = ""

    @property
    def is_labelled(self) -> bool:
        """Whether the examples are labelled.

        With MULTI_LABEL, some examples may be without labels, but not all.
        """
        labels = [example.label for example in self.rows]
        if isinstance(labels[0], list):
            return any(map(any, labels))
        return None not in labels

    def file(self, stem: str, ending: str) -> str:
        """A file name such as `test_results_mismatched.tsv`."""
        return f"{stem}{'_' if self.subset else ''}{self.subset}{ending}"


def labels_of(examples: list[TextExample]) -> NDArray:
    """Returns the labels of examples: [N], or int [N, C] for several."""
    labels = np.array([example.label for example in examples])
    return labels.astype("f4") if labels.dtype.kind == "f" else labels


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A data set: its labels, metrics and files.

    Attributes:
        labels: the valid labels.
        metrics: names of metrics; the first selects the best checkpoint.
        splits: its files.
    """

    labels: Labels
    metrics: tuple[str, ...]
    splits: tuple[Split, ...]

    def split(self, name: str) -> list[Split]:
        """The files of TRAIN, DEV or TEST."""
        return [split for split in self.splits if split.name == name]
