"""Reads rows of texts for similarity, with or without scores."""

import dataclasses
import itertools
import math
from collections.abc import Iterator

import numpy as np

from bert.common.errors import UserError
from bert.common.formats import json_files
from bert.common.progress import say
from bert.data import features, tables
from bert.data.records.encoding import Feature, Schema
from bert.tasks.similarity.pipeline import TEXT, TextEmbedding
from bert.tasks.similarity.settings import COSINE, RANKING, Settings

TEXT_NUMBERS = "text_numbers"  # int [B, T]; equal for equal token ids
_AT_ONCE = 1024
_NLI_LABELS = ("entailment", "neutral", "contradiction")


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """The rows of a file.

    Attributes:
        path: the file.
        texts: T texts of each row.
        scores: float64 [N], or None without scores.
    """

    path: str
    texts: list[list[str]]
    scores: np.ndarray | None


def read_files(settings: Settings) -> dict[str, Table]:
    """Reads the files that the settings require.

    Returns:
        flag of a file -> its rows.

    Raises:
        UserError: a file cannot be read, or a row is invalid.
    """
    return {
        name: _read(settings, name, path)
        for name, path in settings.files.items()
    }


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
    cut, scores = 0, itertools.repeat(0.0)
    if table.scores is not None:
        scores = iter(table.scores.tolist())

    for start in range(0, len(table.texts), _AT_ONCE):
        rows = table.texts[start : start + _AT_ONCE]
        encoded = iter(
            embedding.encode([{TEXT: text} for texts in rows for text in texts])
        )
        for texts in rows:
            held = [*itertools.islice(encoded, len(texts))]
            cut += sum(x.is_truncated for x in held)
            row = [sequence for x in held for sequence in x.rows]
            keys = [tuple(ids) for ids, _ in row]
            yield {
                features.INPUT_IDS: [ids for ids, _ in row],
                features.SEGMENT_IDS: [segments for _, segments in row],
                features.LABEL_IDS: [next(scores)],
                features.IS_REAL_EXAMPLE: [1],
                TEXT_NUMBERS: [
                    numbers.setdefault(key, len(numbers)) for key in keys
                ],
            }

    # Log.
    if cut:
        say(
            f"warning: {table.path}: {cut:,} texts were truncated to "
            f"{embedding.max_length} tokens; see --max_seq_length"
        )


def _read(settings: Settings, flag: str, path: str) -> Table:
    texts = [*map(tables.column_of, settings.text_columns)]
    score = tables.column_of(settings.score_column)
    header = any(isinstance(column, str) for column in texts)
    has_scores = flag == "train_file" and settings.loss != RANKING

    # An evaluation file has scores if it has the score column.
    def choose(line_1: list[str]) -> list[tables.Column]:
        nonlocal has_scores
        columns = line_1 if isinstance(score, str) else range(len(line_1))
        if flag == "eval_file":
            has_scores = score in columns
        return texts + [score] * has_scores

    rows, scores = [], []
    delimiter = tables.delimiter_of(settings.delimiter)
    for line, values in tables.rows(path, choose, header, None, delimiter):
        with json_files.reported(path, line=line):
            if has_scores:
                scores.append(_number(values.pop(), settings.loss == COSINE))
            rows.append([tables.text_of(x, "text") for x in values])
            if not all(map(str.strip, rows[-1])):
                raise UserError("a text is empty", expected="words")
    if not rows:
        raise UserError("no rows", path=path, expected="one per line")
    return Table(path, rows, np.array(scores) if has_scores else None)


def _number(field, is_cosine: bool) -> float:
    try:
        number = float(field)
    except (TypeError, ValueError):
        number = math.nan
    if not (abs(number) <= 1 if is_cosine else math.isfinite(number)):
        expected = "a number, -1 to 1" if is_cosine else "a number"
        fix = "divide it, or pass --loss=cosent" if is_cosine else None
        if str(field).strip().lower() in _NLI_LABELS:
            fix = (
                "for NLI labels, write a table with the columns premise, "
                "entailment and contradiction, and pass --loss=ranking with "
                "these three --text_columns"
            )
        raise UserError(f"score {field!r:.40}", expected=expected, fix=fix)
    return number
