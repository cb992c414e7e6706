"""The casing of a tokenizer: what is done to text before it is split."""

import dataclasses
from typing import Any

from bert.common.flags import flag

# Changes of `Casing`, where no model says it.
NEW_TEXT: dict[str, dict[str, Any]] = {
    "do_lower_case": {
        "default": True,
        "help": "Lower-case the text. True for uncased models.",
    },
    "strip_accents": {"help": "Strip accents; default: as --do_lower_case."},
}


@dataclasses.dataclass(frozen=True)
class Casing:
    """Normalization of text; each field is a flag.

    Attributes:
        do_lower_case: lower-case the text; None: unknown.
        strip_accents: strip accents; None: as `do_lower_case`. The three
            values are those of Hugging Face.
    """

    do_lower_case: bool | None = flag(
        None,
        "Lower-case the text. Default: as recorded in the checkpoint, else "
        "guessed from its vocabulary.",
        resume=True,
    )
    strip_accents: bool | None = flag(
        None,
        "Strip accents. Default: as recorded in the checkpoint, else as "
        "--do_lower_case.",
        resume=True,
    )

    @property
    def strips_accents(self) -> bool | None:
        """Whether accents are stripped: a `strip_accents` of None resolved."""
        if self.strip_accents is None:
            return self.do_lower_case
        return self.strip_accents

    def or_else(self, recorded: "Casing") -> "Casing":
        """Takes what is None from another casing."""
        # Not `or`, as False is a choice too.
        lower, strip = self.do_lower_case, self.strip_accents
        return Casing(
            recorded.do_lower_case if lower is None else lower,
            recorded.strip_accents if strip is None else strip,
        )
