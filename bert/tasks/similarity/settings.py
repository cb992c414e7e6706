"""Settings of run_similarity.py."""

import dataclasses
from typing import Self

from bert.common.errors import UserError
from bert.common.flags import DATA, RARE, TRAINING, flag
from bert.common.rules import excludes, rule
from bert.data import table_rows
from bert.data.pooling import PoolingConfig
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.task_heads import COSENT, COSINE, RANKING
from bert.tasks.finetuning_settings import FineTuning, TeacherFlags


def _check_columns(settings: "Settings") -> None:
    """Raises a UserError if the loss needs another number of columns."""
    count, loss = len(settings.text_columns), settings.loss
    if count < 2 or (count > 2 and loss != RANKING):
        raise UserError(
            f"{count} --text_columns with --loss={loss}",
            expected="two" + ", or more" * (loss == RANKING),
        )


@dataclasses.dataclass(frozen=True)
class Settings(FineTuning, TeacherFlags):
    """Settings of run_similarity.py."""

    RULES = [
        excludes("num_folds", "eval_file"),
        excludes("teacher", "matryoshka_dims"),
        rule(
            "--text_columns are two, or more with --loss=ranking.",
            _check_columns,
            "text_columns=a,b,c",
            "loss=cosine",
        ),
    ]

    train_file: str | None = flag(
        None,
        "Table for --do_train; scores are needed, except with --loss=ranking "
        "or --teacher.",
        path=True,
    )
    eval_file: str | None = flag(
        None,
        "Table for --do_eval and --eval_steps. With a score column, "
        "correlations are computed; without it, retrieval metrics.",
        path=True,
    )
    predict_file: str | None = flag(
        None, "Table for --do_predict; writes the cosines.", path=True
    )
    text_columns: tuple[str, ...] = flag(
        ("text", "text_b"),
        "Text columns, by name or number from 0. For --loss=ranking: anchor, "
        "positive, then any number of negatives.",
        resume=True,
        topic=DATA,
    )
    score_column: str = flag(
        "score", "Score column, by name or number from 0.", topic=DATA
    )
    delimiter: str | None = flag(
        None,
        "Field delimiter; default: a comma for .csv, else a tab.",
        parse=table_rows.delimiter_of,
        topic=RARE,
    )
    loss: str = flag(
        COSENT,
        "Loss. cosent: higher scores get higher cosines. cosine: squared error "
        "of the cosine. ranking: multiple negatives ranking, with in-batch "
        "negatives.",
        choices=(COSENT, COSINE, RANKING),
        resume=True,
        topic=TRAINING,
    )
    scale: float = flag(
        20.0,
        "For cosent and ranking: factor of the cosines, 1 / temperature.",
        at_least=1e-6,
        at_most=1e6,
        resume=True,
        topic=TRAINING,
    )
    matryoshka_dims: tuple[str, ...] = flag(
        (),
        "Embedding sizes to train (Matryoshka): the loss is summed over the "
        "truncated embeddings. Default: the model's embedding size.",
        resume=True,
        topic=RARE,
    )
    pooling: str | None = flag(
        None,
        "Pooling of the token vectors to an embedding: first token, mean or "
        "maximum. Default: recorded in the model, else mean.",
        choices=("cls", "mean", "max"),
        resume=True,
    )

    def pooling_config(self, model: ModelFolder) -> PoolingConfig:
        """The pooling configuration: --pooling, else as recorded in the model.

        Args:
            model: the initial model.

        Raises:
            UserError: the model has an unsupported pooling.
        """
        recorded = model.pooling_config or PoolingConfig()
        return recorded.resolve(self.pooling, normalize=True)

    def for_model(self, model: ModelFolder) -> Self:
        """Returns the settings, with the pooling that the model records."""
        pooling = self.pooling_config(model).pooling
        return dataclasses.replace(super().for_model(model), pooling=pooling)

    def sizes(self, hidden_size: int, used: int) -> tuple[int, ...]:
        """The embedding sizes to train, from --matryoshka_dims.

        Args:
            hidden_size: int. H, the size of a vector.
            used: int. The embedding size of the model, the default.

        Raises:
            UserError: a size is not in 1 to H.
        """
        texts = self.matryoshka_dims or (str(used),)
        for text in texts:
            if not text.isdecimal() or not 1 <= int(text) <= hidden_size:
                raise UserError(
                    f"{text!r:.20} in --matryoshka_dims",
                    expected=f"1 to {hidden_size}, the size of an embedding",
                )
        return tuple(map(int, texts))
