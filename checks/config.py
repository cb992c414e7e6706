"""What is odd about a config, and whether it fits what it is used with."""

from common.findings import Finding, fine, wrong
from modeling.config import BertConfig

_SIZES = (
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "intermediate_size",
)


def check_sizes(
    config: BertConfig, path: str, published: dict[str, BertConfig]
) -> list[Finding]:
    """Says which network it is.

    Args:
        config: that was read.
        path: its file.
        published: name -> config of the usual sizes.
    """
    names = [
        name
        for name, other in published.items()
        if all(getattr(config, x) == getattr(other, x) for x in _SIZES)
    ]
    sizes = ", ".join(f"{name} {getattr(config, name)}" for name in _SIZES)
    known = (
        f"as in {' and '.join(names)}" if names else "none of those in configs/"
    )
    return [fine(f"{sizes}: {known}", path=path)]


def check_length(
    config: BertConfig, path: str, max_seq_length: int | None, where: str
) -> list[Finding]:
    """Whether rows fit into the table of positions.

    Args:
        config: that was read.
        path: its file.
        max_seq_length: of the records; None if it is not known.
        where: the records, for messages.
    """
    if max_seq_length is None:
        return []
    if max_seq_length <= config.max_position_embeddings:
        return []
    return [
        wrong(
            f"max_position_embeddings is {config.max_position_embeddings}",
            path=path,
            expected=f"at least {max_seq_length}, the length of {where}",
            fix="make shorter records, or lengthen the table: "
            "convert_checkpoint.py --extend_positions",
        )
    ]
