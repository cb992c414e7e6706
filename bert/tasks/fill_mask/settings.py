"""Settings of fill_mask.py."""

import dataclasses

from bert.common.flags import BaseSettings, flag
from bert.modeling.formats.model_folder import ModelFiles


@dataclasses.dataclass(frozen=True)
class Settings(BaseSettings, ModelFiles):
    """Settings of fill_mask.py."""

    init_checkpoint: str = flag(
        None,
        "Prefix, folder or name of the checkpoint.",
        required=True,
        path=True,
    )
    input_file: str | None = flag(
        None,
        "File with one sentence per line, each with [MASK]. Default: standard "
        "input.",
        path=True,
    )
    top_k: int = flag(5, "Number of words for each mask.", at_least=1)
    words: tuple[str, ...] | None = flag(
        None,
        "Print the probabilities of these words instead of the best words.",
    )
