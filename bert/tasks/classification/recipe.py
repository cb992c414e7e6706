"""Recipe: training settings for a user's own table.

The original's defaults were made for BERT-base and 3,000 to 400,000 rows. With
fewer rows, most of the steps are spent on finding a head from random weights.
The evidence is in docs/finetuning.md, "The recipe for tables".
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import NamedTuple, Self

from bert.common.flags import RARE, TRAINING, BaseSettings, flag
from bert.common.formats.json_files import Json
from bert.common.progress import counted
from bert.data.labels import REGRESSION, Labels
from bert.modeling.config import BertConfig

ORIGINAL, TABLE = "original", "table"
_EPOCHS, _LEAST_STEPS, _MOST_EPOCHS = 3, 60, 20


class Recipe(NamedTuple):
    """Values of training flags; the defaults are the original's.

    Attributes:
        start_head: bool. Whether the head starts from a linear model of the
            outputs of the encoder. Default: False.
        num_train_epochs: float. Number of passes over the rows. Default: 3.
    """

    start_head: bool = False
    num_train_epochs: float = 3.0

    @classmethod
    def of_flags(cls, values: Mapping[str, Json]) -> Self:
        """Returns the recipe of a run: flag -> value; others are ignored."""
        return cls(**{x: values[x] for x in cls._fields if x in values})


@dataclasses.dataclass(frozen=True)
class RecipeFlags(BaseSettings):
    """The flags that a recipe chooses, if they are not given."""

    topic = TRAINING

    recipe: str | None = flag(
        None,
        "Defaults of the training flags. table: --start_head, and as many "
        "epochs as the number of rows needs; original: the original's. "
        "Default: table for your own tables.",
        choices=(TABLE, ORIGINAL),
    )
    start_head: bool = flag(
        False,
        "Start the head from a linear model of the outputs of the encoder, "
        "instead of random weights. Default: as in --recipe.",
        resume=True,
        topic=RARE,
    )


def choose(num_rows: int, batch_size: int) -> Recipe:
    """Chooses the training settings for a table.

        choose(200, 32)  # Recipe(start_head=True, num_train_epochs=10.0)

    Args:
        num_rows: int. Number of training rows.
        batch_size: int. Rows of a batch.
    """
    wanted = math.ceil(_LEAST_STEPS * batch_size / max(1, num_rows))
    return Recipe(True, float(min(max(_EPOCHS, wanted), _MOST_EPOCHS)))


def of_fit(
    num_rows: int,
    batch_size: int,
    is_compiled: bool,
    has_new_head: bool,
    epochs: int | None,
    start_head: bool | None,
) -> Recipe:
    """Chooses the settings of `TextClassifier.fit`.

    Args:
        num_rows: int. Number of training texts; 0 if unknown.
        batch_size: int. Texts of a batch.
        is_compiled: bool. Whether the user has chosen an optimizer.
        has_new_head: bool. Whether the head has random weights, and the
            encoder was loaded.
        epochs, start_head: the arguments of `fit`, or None.
    """
    chosen = Recipe(num_train_epochs=1.0)
    if num_rows and not is_compiled:
        chosen = choose(num_rows, batch_size)
    return Recipe(
        has_new_head and num_rows > 0 if start_head is None else start_head,
        chosen.num_train_epochs if epochs is None else epochs,
    )


def describe(
    chosen: Recipe,
    num_rows: int,
    batch_size: int,
    labels: Labels,
    config: BertConfig,
) -> str:
    """Describes the settings of training in a line.

    Args:
        chosen: Recipe. The values of the run.
        num_rows, batch_size: see `choose`.
        labels: Labels. Labels of the rows.
        config: BertConfig. Sizes of the network.
    """
    layers, size = config.num_hidden_layers, config.hidden_size
    kind = "numbers" if labels.kind == REGRESSION else f"{labels.size} labels"
    epochs = chosen.num_train_epochs
    steps = int(num_rows / batch_size * epochs)
    start = "frozen features" if chosen.start_head else "random weights"
    return (
        f"recipe: {num_rows:,} rows, {kind}, {layers} x {size}: head from "
        f"{start}, {epochs:g} epoch{'s' * (epochs != 1)} "
        f"({counted(steps, 'step')}); "
        "--recipe=original for the original's"
    )
