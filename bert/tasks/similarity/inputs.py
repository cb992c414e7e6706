"""Reads rows of texts for similarity, with or without scores."""

import functools

from bert.common.errors import UserError
from bert.common.formats.json_files import Json
from bert.data import tables
from bert.data.tables import Column, InputFile
from bert.modeling.task_heads import COSINE, RANKING
from bert.tasks import folds
from bert.tasks.run import Run
from bert.tasks.similarity.settings import Settings
from bert.tasks.similarity.task import TextEmbedding, TextGroup
from bert.tasks.task import Files

_SCORE = "score"
_NLI_LABELS = ("entailment", "neutral", "contradiction")


def read(run: Run[Settings]) -> tuple[TextEmbedding, Files]:
    """Reads the files that the settings require.

    In a fold, rows with the same first text stay together.

    Args:
        run: Run. The run.

    Returns:
        the task of the run, and its files of `TextGroup`s.

    Raises:
        UserError: a file cannot be read, or a row is invalid.
    """
    settings = run.settings
    files: dict[str, InputFile[TextGroup]] = {}
    for name, path in settings.files.items():
        files[name] = _read(settings, name, path)
    run.warn_of_vocabulary(
        " ".join(y.texts) for x in files.values() for y in x.rows
    )

    # The evaluation file selects the metrics.
    evaluated = files.get("eval_file") or files.get("train_file")
    has_scores = bool(evaluated and evaluated.rows[0].score is not None)
    task = TextEmbedding(
        run.model.tokenizer,
        settings.pooling_config(run.model),
        settings.max_seq_length,
        texts=len(settings.text_columns),
        has_scores=has_scores,
    )
    return task, folds.files_of(settings, files, lambda row: row.texts[0])


def _read(settings: Settings, flag: str, path: str) -> InputFile[TextGroup]:
    texts = [*map(tables.column_of, settings.text_columns)]
    schema = {
        f"text {number}": Column(column, flag="text_columns")
        for number, column in enumerate(texts, 1)
    }
    needs_scores = settings.loss != RANKING and not settings.teacher
    if flag == "eval_file" or flag == "train_file" and needs_scores:
        schema[_SCORE] = Column(
            tables.column_of(settings.score_column),
            functools.partial(_score, settings.loss == COSINE),
            optional=flag == "eval_file",
            flag="score_column",
        )
    header = any(isinstance(column, str) for column in texts)
    delimiter = settings.delimiter
    return tables.read(path, schema, _row, header=header, delimiter=delimiter)


def _row(line: int, score: float | None = None, **texts: str) -> TextGroup:
    if not all(map(str.strip, texts.values())):
        raise UserError("a text is empty", expected="words")
    return TextGroup([*texts.values()], score)


def _score(is_cosine: bool, value: Json, field: str) -> float:
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
