"""A model in memory: sizes, weights, tokenizer and task."""

import dataclasses
from typing import Any, ClassVar

import numpy as np

from bert.common.errors import UserError
from bert.data.pooling import PoolingConfig
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.config import BertConfig
from bert.modeling.formats import readers


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """A model in memory, such as one that was read, or one to export.

    Attributes:
        path: str. Source of the model, for messages.
        config: BertConfig. Sizes of the network.
        values: dict. Original name -> float32 array.
        tokenizer: Tokenizer or None. Vocabulary, casing and maximum length.
            Default: None.
        task_json: dict or None. Content of its `task.json`. Default: None.
        pooling_config: PoolingConfig or None. Pooling that computes an
            embedding of a text. Default: None.
        skipped: tuple of str. Names of variables of its file that are not
            part of a BERT. Default: ().
    """

    format: ClassVar[str] = "memory"

    path: str
    config: BertConfig
    values: dict[str, Any]
    tokenizer: Tokenizer | None = None
    task_json: dict[str, Any] | None = None
    pooling_config: PoolingConfig | None = None
    skipped: tuple[str, ...] = ()

    @property
    def config_file(self) -> str:
        """Source of the sizes, for messages."""
        return self.path

    @property
    def max_length(self) -> int:
        """Longest sequence in tokens."""
        most = self.config.max_position_embeddings
        return min(most, self.tokenizer.max_length) if self.tokenizer else most

    def check_finite(self) -> None:
        """Rejects weights that are NaN or infinite; see `check_finite`."""
        check_finite(self.values, self.path)

    def network(self, head: str | None = None, **options):
        """Builds the network with the weights.

        Args:
            head: str or None. Key of `task_heads.HEADS`. Default: None, only
                the encoder.
            **options: see `checkpoints.load_network`.

        Raises:
            UserError: a size of the config differs, or a weight is missing.
        """
        return readers.checkpoints().load_network(
            self.config, self.values, self.path, head, **options
        )


def check_finite(values: dict[str, Any], path: str) -> None:
    """Rejects weights that are NaN or infinite.

    Args:
        values: dict. Name -> array.
        path: str. Source of the weights, for messages.

    Raises:
        UserError: a variable has such a weight.
    """
    for name, value in values.items():
        # bfloat16 has the kind V.
        if value.dtype.kind in "fV" and not np.isfinite(value).all():
            raise UserError(
                f"{name}: NaN or infinite weights",
                path=path,
                fix="pass another checkpoint",
            )
