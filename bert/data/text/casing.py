"""The casing of a tokenizer: lower-casing and stripping of accents."""

import dataclasses
from typing import TypeVar

from bert.common.flags import changed, flag

LowerT = TypeVar("LowerT", bound=bool | None)


def strips(do_lower_case: LowerT, strip_accents: bool | None) -> LowerT | bool:
    """Whether accents are stripped, with a None of `strip_accents` resolved."""
    return do_lower_case if strip_accents is None else strip_accents


@dataclasses.dataclass(frozen=True)
class Casing:
    """Normalization of text; each field is a flag.

    Attributes:
        do_lower_case: bool or None. Whether to lower-case the text. None:
            unknown.
        strip_accents: bool or None. Whether to strip accents. None: as
            `do_lower_case`, as in Hugging Face's tokenizers.
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
        """Whether accents are stripped, with a None resolved."""
        return strips(self.do_lower_case, self.strip_accents)

    def or_else(self, recorded: "Casing") -> "Casing":
        """Returns this casing with each None replaced by a recorded value."""
        # Not with `or`, as False is a valid value.
        lower, strip = self.do_lower_case, self.strip_accents
        return Casing(
            recorded.do_lower_case if lower is None else lower,
            recorded.strip_accents if strip is None else strip,
        )


@dataclasses.dataclass(frozen=True)
class NewCasing(Casing):
    """Casing of scripts without a checkpoint."""

    do_lower_case: bool = changed(
        Casing,
        "do_lower_case",
        default=True,
        help="Lower-case the text. True for uncased models.",
    )
    strip_accents: bool | None = changed(
        Casing,
        "strip_accents",
        help="Strip accents. Default: as --do_lower_case.",
    )

    @property
    def strips_accents(self) -> bool:
        """Whether accents are stripped, with a None resolved."""
        return strips(self.do_lower_case, self.strip_accents)
