"""Reads rows of texts for similarity, with or without scores."""

import functools
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

from bert.common.errors import UserError
from bert.common.progress import log
from bert.data import features, tables
from bert.data.records.encoding import Feature, Schema
from bert.data.tables import Column, Table
from bert.tasks import folds
from bert.tasks.run_folder import RunFolder
from bert.tasks.similarity.pipeline import TEXT, TextEmbedding
from bert.tasks.similarity.settings import COSINE, RANKING, Settings

TEXT_NUMBERS = "text_numbers"  # int [B, T]; equal for equal token ids
SCORE = "score"
_AT_ONCE = 1024
_NLI_LABELS = ("entailment", "neutral", "contradiction")


class TextGroup(NamedTuple):
    """The T texts of a row, and their score or 0.0."""

    texts: list[str]
    score: float


def read_files(folder: RunFolder) -> dict[str, Table]:
    """Reads the files that the settings require.

    In a fold, rows with the same first text stay together.

    Returns:
        flag of a file -> its `TextGroup`s.

    Raises:
        UserError: a file cannot be read, or a row is invalid.
    """
    settings = folder.settings
    read = {
        name: _read(settings, name, path)
        for name, path in settings.files.items()
    }
    folder.warn(" ".join(y.texts) for x in read.values() for y in x.rows)
    return folds.hold_out(settings, read, lambda row: row.texts[0])


def schema(count: int) -> Schema:
    """Schema of `data.records.examples.Examples`.

    Args:
        count: int. T, the texts of a row.
    """
    return {
        features.LABEL_IDS: Feature("float32"),
        features.IS_REAL_EXAMPLE: Feature(),
        TEXT_NUMBERS: Feature(size=count),
    }


def encode(table: Table, embedding: TextEmbedding) -> Iterator[dict]:
    """Yields the features of rows, T sequences each; logs truncated texts.

    Args:
        table: the rows.
        embedding: the task, which converts texts to sequences.
    """
    numbers: dict[tuple[int, ...], int] = {}
    cut = 0
    for start in range(0, len(table.rows), _AT_ONCE):
        rows = table.rows[start : start + _AT_ONCE]
        encoded = iter(
            embedding.encode([{TEXT: text} for x in rows for text in x.texts])
        )
        for texts, score in rows:
            held = [*itertools.islice(encoded, len(texts))]
            cut += sum(x.is_truncated for x in held)
            row = [sequence for x in held for sequence in x.rows]
            keys = [tuple(ids) for ids, _ in row]
            yield {
                features.INPUT_IDS: [ids for ids, _ in row],
                features.SEGMENT_IDS: [segments for _, segments in row],
                features.LABEL_IDS: [score],
                features.IS_REAL_EXAMPLE: [1],
                TEXT_NUMBERS: [
                    numbers.setdefault(key, len(numbers)) for key in keys
                ],
            }

    # Log.
    if cut:
        log(
            f"warning: {table.path}: {cut:,} texts were truncated to "
            f"{embedding.max_length} tokens; see --max_seq_length"
        )


def _read(settings: Settings, flag: str, path: str) -> Table:
    texts = [*map(tables.column_of, settings.text_columns)]
    schema = {
        f"text {number}": Column(column, flag="text_columns")
        for number, column in enumerate(texts, 1)
    }
    if flag == "eval_file" or flag == "train_file" and settings.loss != RANKING:
        schema[SCORE] = Column(
            tables.column_of(settings.score_column),
            functools.partial(_score, settings.loss == COSINE),
            optional=flag == "eval_file",
            flag="score_column",
        )
    header = any(isinstance(column, str) for column in texts)
    delimiter = settings.delimiter
    return Table.read(path, schema, _row, header=header, delimiter=delimiter)


def _row(line: int, score: float = 0.0, **texts: str) -> TextGroup:
    if not all(map(str.strip, texts.values())):
        raise UserError("a text is empty", expected="words")
    return TextGroup([*texts.values()], score)


def _score(is_cosine: bool, value: Any, field: str) -> float:
    if str(value).strip().lower() in _NLI_LABELS:
        raise UserError(
            f"{field} {value!r:.40}",
            expected="a number",
            fix="for NLI labels, write a table with the columns premise, "
            "entailment and contradiction, and pass --loss=ranking with "
            "these three --text_columns",
        )
    number = tables.number(value, field)
    if is_cosine and abs(number) > 1:
        raise UserError(
            f"{field} {value!r:.40}",
            expected="a number, -1 to 1",
            fix="divide it, or pass --loss=cosent",
        )
    return number
