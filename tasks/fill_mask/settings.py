"""Settings of fill_mask.py."""

import dataclasses

from common.flags import flag


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of fill_mask.py."""

    init_checkpoint: str | None = flag(
        None,
        "A checkpoint's prefix, or its folder.",
        required=True,
        path=True,
    )
    bert_config_file: str | None = flag(
        None, "Default: beside the checkpoint.", path=True
    )
    vocab_file: str | None = flag(
        None, "Default: vocab.txt beside the checkpoint.", path=True
    )
    input_file: str | None = flag(
        None, "A sentence a line. Default: standard input.", path=True
    )
    do_lower_case: bool | None = flag(
        None,
        "Lower-case the text. Default: as the checkpoint was trained, or "
        "True if that is unknown.",
    )
    strip_accents: bool | None = flag(
        None,
        "Strip accents. Default: as the checkpoint was trained, or as "
        "--do_lower_case.",
    )
    top_k: int = flag(5, "Words for each mask.", at_least=1)
