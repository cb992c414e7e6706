"""Recipe: training settings for a user's own table, or labelled words.

The original's defaults were made for BERT-base and 3,000 to 400,000 rows. With
fewer rows, most of the steps are spent on finding a head from random weights.
The evidence is in docs/finetuning.md, "The recipe for tables".
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import NamedTuple, Self

from numpy.typing import NDArray

from bert.common.flags import RARE, TRAINING, BaseSettings, flag
from bert.common.formats.json_files import Json
from bert.common.progress import counted
from bert.data.labels import CLASSES, MULTI_LABEL, REGRESSION, Labels
from bert.modeling.config import BertConfig

ORIGINAL, TABLE = "original", "table"
_EPOCHS, _RATE = 3.0, 5e-5
_RATE_FROM_START = 3e-5
_BATCH, _SMALL_BATCH = 32, 16
_RATE_CORRECTED = 1e-4  # with bias correction, for H = 384 and batches of 32
# Least numbers of steps, and the most epochs for them.
_LEAST_STEPS = ((160, 6), (60, 20))
_SMALL, _SMALLEST = 384, 128  # hidden sizes
_LEAST_TO_LEARN = 200  # steps


class FrozenHead(NamedTuple):
    """A head that was fitted to frozen features.

    Attributes:
        weights: float32 [C, H + 1]. W of x W^T + b, and b in the last column.
        start: float32 [C, H + 1]. Smaller weights, from which training starts:
            a large head amplifies each change of the encoder.
        predicts: bool. Whether a linear model predicts the labels: its values
            for left-out texts are better than a constant by more than a
            standard error (as in the one-standard-error rule, Breiman et al.
            1984) and a fraction of its squared error, 4 % for a model of the
            features, 10 % for one of the words. A model of numbers always
            counts, as no constant ranks them.
        kind: str. Kind of the labels.
        words: float32 [V, H] or None. Values to add to the word embeddings, if
            only the model of the words predicts the labels; `start` is fitted
            to the encoder with them. Default: None.
    """

    weights: NDArray
    start: NDArray
    predicts: bool
    kind: str
    words: NDArray | None = None


class Recipe(NamedTuple):
    """Values of training flags; the defaults are the original's.

    Attributes:
        start_head: bool. Whether the head starts from a linear model of the
            outputs of the encoder. If only the words predict the labels, the
            word embeddings start from them, too. Default: False.
        num_train_epochs: float. Number of passes over the rows. Default: 3.
        learning_rate: float. Peak of the learning rate. Default: 5e-5.
        optimizer: str. Key of `optimization.RULES`. Default: "bert_adam".
        train_batch_size: int. Rows of a batch. Default: 32.
    """

    start_head: bool = False
    num_train_epochs: float = _EPOCHS
    learning_rate: float = _RATE
    optimizer: str = "bert_adam"
    train_batch_size: int = _BATCH

    @classmethod
    def of_flags(cls, values: Mapping[str, Json]) -> Self:
        """Returns the recipe of a run: flag -> value; others are ignored."""
        return cls(**{x: values[x] for x in cls._fields if x in values})


@dataclasses.dataclass(frozen=True)
class RecipeFlags(BaseSettings):
    """The flags that a recipe chooses, if they are not given.

    Attributes:
        unit: str. Name of several training examples, in messages.
    """

    topic = TRAINING
    unit = "rows"

    recipe: str | None = flag(
        None,
        "Defaults of the training flags. table: --start_head, epochs, learning "
        "rate, optimizer and batch size for the number of rows, the size of "
        "the network, and whether linear models predict the labels; original: "
        "the original's. Default: table for your own tables and labelled "
        "words.",
        choices=(TABLE, ORIGINAL),
    )
    start_head: bool = flag(
        False,
        "Start the head from a linear model of the outputs of the encoder, "
        "instead of random weights. If only the words predict the labels, the "
        "word embeddings start from them, too. With --recipe=table: if linear "
        "models predict the labels.",
        resume=True,
        topic=RARE,
    )

    @property
    def usual_recipe(self) -> str:
        """--recipe, if it is not given."""
        return TABLE

    @property
    def uses_recipe(self) -> bool:
        """Whether training has the defaults of `choose`."""
        return (self.recipe or self.usual_recipe) == TABLE


def choose(
    num_rows: int,
    batch_size: int | None,
    hidden_size: int,
    head: FrozenHead | None,
    start_head: bool = False,
    num_parts: int = 1,
) -> Recipe:
    """Chooses the training settings for a table.

        choose(200, None, 768, None).num_train_epochs  # 10.0

    Small networks learn more of a task, and compute faster: if the hidden size
    H is below 384, steps and epochs are multiplied by 384 / H, and the learning
    rate by its square; below 128 as for 128.

    Args:
        num_rows: int. Number of training rows.
        batch_size: int or None. Rows of a batch, if they are given.
        hidden_size: int. H.
        head: FrozenHead or None. A head for the rows. If it does not predict
            the labels, more epochs would only learn few rows by heart. From
            200 steps on, Adam then has bias correction, and the default batch
            size is halved. None: the head is not new, the encoder has random
            weights, or the rows are too few.
        start_head: bool. Whether training starts from this head even then.
            Default: False.
        num_parts: int. Devices times micro-batches: a batch has at least so
            many rows. Default: 1.
    """
    ratio = _SMALL / max(hidden_size, _SMALLEST)
    size = _BATCH if batch_size is None else batch_size
    if head and not head.predicts:
        if num_steps(num_rows, size, _EPOCHS) < _LEAST_TO_LEARN:
            return Recipe(start_head, train_batch_size=size)
        if batch_size is None:
            size = max(_SMALL_BATCH, num_parts)
        # Without bias correction, large first steps end in a constant. With
        # it, rates follow the root of the batch size (Malladi et al. 2022,
        # arXiv:2205.10287).
        rate = _rounded(_RATE_CORRECTED * ratio * math.sqrt(size / _BATCH))
        return Recipe(start_head, _EPOCHS, rate, "corrected_adamw", size)

    # Numbers and labels of words are learned better with the usual rate.
    lower = head is not None and head.kind in (CLASSES, MULTI_LABEL)
    factor = max(1, ratio)
    rate = _rounded((_RATE_FROM_START if lower else _RATE) * factor**2)
    epochs = [
        min(
            math.ceil(factor * most),
            math.ceil(factor * steps * size / max(1, num_rows)),
        )
        for steps, most in _LEAST_STEPS
    ]
    num_epochs = float(max(_EPOCHS, *epochs))
    return Recipe(head is not None, num_epochs, rate, train_batch_size=size)


def _rounded(rate: float) -> float:
    """A learning rate with two digits."""
    return float(f"{rate:.2g}")


def num_steps(num_rows: int, batch_size: int, epochs: float) -> int:
    """Number of training steps, counted as in the original.

    Args:
        num_rows: int. Number of training rows.
        batch_size: int. Rows of a batch.
        epochs: float. Number of passes over the rows.
    """
    return int(num_rows / batch_size * epochs)


def of_fit(
    chosen: Recipe,
    once: bool,
    epochs: int | None,
    learning_rate: float | None,
) -> Recipe:
    """Completes the settings of `TextClassifier.fit`.

    Args:
        chosen: Recipe. Result of `choose`.
        once: bool. Whether one epoch is the default, as in Keras: after
            `compile`, and for a dataset, which may be endless.
        epochs, learning_rate: the arguments of `fit`, or None.
    """
    if epochs is None and once:
        epochs = 1
    if epochs is not None:
        chosen = chosen._replace(num_train_epochs=epochs)
    if learning_rate is not None:
        chosen = chosen._replace(learning_rate=learning_rate)
    return chosen


def describe(
    chosen: Recipe,
    num_rows: int,
    head: FrozenHead | None,
    labels: Labels,
    config: BertConfig,
    unit: str,
) -> str:
    """Describes the settings of training in a line.

    Args:
        chosen: Recipe. The values of the run.
        num_rows, head: see `choose`.
        labels: Labels. Labels of the rows.
        config: BertConfig. Sizes of the network.
        unit: str. See `RecipeFlags`.
    """
    layers, size = config.num_hidden_layers, config.hidden_size
    targets = (
        "numbers" if labels.kind == REGRESSION else f"{labels.size} labels"
    )
    epochs, batch_size = chosen.num_train_epochs, chosen.train_batch_size
    steps = counted(num_steps(num_rows, batch_size, epochs), "step")
    usual, others = Recipe(), ""
    if chosen.optimizer != usual.optimizer:
        others = f", {chosen.optimizer}"
    if batch_size != usual.train_batch_size:
        others += f", batches of {batch_size}"

    start = "frozen features" if chosen.start_head else "random weights"
    start = f"head from {start}, " if head or chosen.start_head else ""
    if head and head.words is not None and chosen.start_head:
        start = f"word embeddings from a linear model of the words, {start}"
    if head and not head.predicts:
        start = f"linear models do not predict the labels, {start}"
    return (
        f"recipe: {num_rows:,} {unit}, {targets}, {layers} x {size}: {start}"
        f"{epochs:g} epoch{'s' * (epochs != 1)} ({steps}), learning rate "
        f"{chosen.learning_rate:g}{others}; --recipe=original for the "
        "original's"
    )
