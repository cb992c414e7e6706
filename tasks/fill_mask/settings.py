"""Settings of fill_mask.py."""

import dataclasses

from common.flags import flag


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of fill_mask.py."""

    init_checkpoint: str | None = flag(
        None,
        "Prefix or folder of the checkpoint.",
        required=True,
        path=True,
    )
    bert_config_file: str | None = flag(
        None, "Default: bert_config.json beside the checkpoint.", path=True
    )
    vocab_file: str | None = flag(
        None, "Default: vocab.txt beside the checkpoint.", path=True
    )
    input_file: str | None = flag(
        None, "One sentence per line. Default: standard input.", path=True
    )
    do_lower_case: bool | None = flag(
        None,
        "Lower-case the text. Default: as the checkpoint was trained, else "
        "True.",
    )
    strip_accents: bool | None = flag(
        None,
        "Strip accents. Default: as the checkpoint was trained, else as "
        "--do_lower_case.",
    )
    top_k: int = flag(5, "Number of words for each mask.", at_least=1)
