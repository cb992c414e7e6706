"""Settings of run_similarity.py."""

import dataclasses
from collections.abc import Iterator

from bert.common.errors import UserError
from bert.common.flags import DATA, RARE, TRAINING, flag, group
from bert.data import tables
from bert.data.pooling import TextVectors
from bert.modeling.formats.model_folder import ModelFolder
from bert.tasks.finetuning_settings import FineTuning, files_of, unnamed

COSENT, COSINE, RANKING = "cosent", "cosine", "ranking"  # losses


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of run_similarity.py."""

    finetuning: FineTuning = group(FineTuning)
    train_file: str | None = flag(
        None, "Table of texts, and of scores but for ranking.", path=True
    )
    eval_file: str | None = flag(
        None,
        "Table for --do_eval and --eval_steps: with the column of scores for "
        "correlations, without it for retrieval.",
        path=True,
    )
    predict_file: str | None = flag(
        None, "Table of texts for --do_predict.", path=True
    )
    text_columns: tuple[str, ...] = flag(
        ("text", "text_b"),
        "Columns of the texts, by name or number from 0; for ranking a text, "
        "the one that belongs to it, and any number that do not.",
        resume=True,
        topic=DATA,
    )
    score_column: str = flag(
        "score", "Column of the scores, by name or number.", topic=DATA
    )
    delimiter: str | None = flag(
        None,
        "Delimiter of fields; default: .csv a comma, else tabs.",
        parse=tables.delimiter_of,
        topic=RARE,
    )
    loss: str = flag(
        COSENT,
        "cosent: pairs of higher scores get higher cosines; cosine: squared "
        "error of the cosine; ranking: the second text among those of all "
        "rows of the batch.",
        choices=(COSENT, COSINE, RANKING),
        resume=True,
        topic=TRAINING,
    )
    scale: float = flag(
        20.0,
        "cosent, ranking: factor of the cosines, 1 / temperature.",
        at_least=1e-6,
        resume=True,
        topic=TRAINING,
    )
    matryoshka_dims: tuple[str, ...] = flag(
        (),
        "Sizes that a vector can be cut to: the loss is the sum of those of "
        "its first numbers; default: all of them.",
        resume=True,
        topic=RARE,
    )
    pooling: str | None = flag(
        None,
        "Vector of a text: of the first token, or the mean or maximum over "
        "all tokens. Default: that of the model, else the mean.",
        choices=("cls", "mean", "max"),
        resume=True,
    )
    given: frozenset[str] = frozenset()

    def vectors(self, model: ModelFolder) -> TextVectors:
        """How vectors are made: as told, else as the model's folder says.

        Args:
            model: the initial weights.

        Raises:
            UserError: the folder has another pooling.
        """
        recorded = model.vectors or TextVectors()
        if self.pooling is None:
            recorded.check()
        pooling = self.pooling or recorded.pooling
        return dataclasses.replace(
            recorded, pooling=pooling, normalize=True, mistake=None
        )

    def sizes(self, hidden_size: int, used: int) -> tuple[int, ...]:
        """--matryoshka_dims as numbers.

        Args:
            hidden_size: numbers of a vector, H.
            used: numbers that are kept of it, the default.

        Raises:
            UserError: one is not 1 to H.
        """
        texts = self.matryoshka_dims or (str(used),)
        for text in texts:
            if not text.isdecimal() or not 1 <= int(text) <= hidden_size:
                raise UserError(
                    f"{text!r:.20} in --matryoshka_dims",
                    expected=f"1 to {hidden_size}, the size of a vector",
                )
        return tuple(map(int, texts))

    def mistakes(self) -> Iterator[UserError]:
        """Yields the flags that contradict each other, and missing files."""
        files = files_of(self)
        yield from self.finetuning.mistakes(bool(files))
        yield from unnamed(files)
        count = len(self.text_columns)
        if count < 2 or (count > 2 and self.loss != RANKING):
            yield UserError(
                f"{count} --text_columns with --loss={self.loss}",
                expected="two" + ", or more" * (self.loss == RANKING),
            )
