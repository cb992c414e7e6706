"""Files of run_classifier.py: their splits, columns and examples.

Dataset      labels, metrics and splits of a data set
Split        a file of a data set: its columns
TextRow      a row of such a file -> TextExample, when its label is checked
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
from bert.tasks.task import DEV, TEST, TRAIN

UNLABELLED = "unlabelled"  # texts for a teacher
MISMATCHED = "mismatched"  # genres that the training file lacks
_CONVERTERS = {"label": None, "group": tables.optional_text}


class TextRow(NamedTuple):
    """A row of a table: the cells of an example.

    Attributes:
        line: the first line of the row in the file, from 1.
        text: the first text.
        text_b: the second text, or "".
        label: the cell of the label; None without a column.
        id: the id; "" without a column.
        group: the group; "" without a column.
        language: the language in XNLI's files, else "".
    """

    line: int
    text: str
    text_b: str = ""
    label: Json = None
    id: str = ""
    group: str = ""
    language: str = ""


class TextExample(NamedTuple):
    """One or two texts with their label.

    Attributes:
        id: the id in the file, or the number of the example from 0.
        text: the first text.
        text_b: the second text, or "".
        label: the id of the class; a list of C zeros and ones; a number; or
            None if the example has no label.
        line: the first line of the example in the file, from 1.
        group: examples of a group stay in the same split; "" for no group.
        weight: the weight of the example in scores.
    """

    id: str = ""
    text: str = ""
    text_b: str = ""
    label: Json = None
    line: int = 0
    group: str = ""
    weight: float = 1.0


def schema_of(
    text: str | int | None,
    text_b: str | int | None = None,
    label: str | int | None = None,
    *,
    optional: Container[str] = (),
    have_flags: bool = False,
    **named: str | int | None,
) -> TableSchema:
    """Makes the schema of a file of `TextRow`s.

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
            _CONVERTERS.get(field, tables.text),
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
        schema: TableSchema. Its columns, see `schema_of`.
        subset: str. Name of a second file of the same kind. Default: "".
        submission: str. Name of its predictions on the GLUE site, or "".
            Default: "".
        options: dict. More arguments of `tables.read`. Default: {}.
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


def labels_of(rows: list[TextExample]) -> NDArray:
    """Returns the labels of rows: [N], or int [N, C] for several."""
    labels = np.array([row.label for row in rows])
    return labels.astype("f4") if labels.dtype.kind == "f" else labels


def is_labelled(rows: list[TextExample]) -> bool:
    """Whether examples are labelled.

    With MULTI_LABEL, some examples may be without labels, but not all.
    """
    labels = [row.label for row in rows]
    if isinstance(labels[0], list):
        return any(map(any, labels))
    return None not in labels


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

    def submission(self, subset: str) -> str:
        """The name of the predictions for a test file on the GLUE site."""
        names = {x.subset: x.submission for x in self.split(TEST)}
        return names[subset]
