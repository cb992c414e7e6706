"""Settings of tokenization; each field is a flag."""

import dataclasses

from common.flags import flag, group


@dataclasses.dataclass(frozen=True)
class Casing:
    """Normalization of text."""

    do_lower_case: bool = flag(
        True,
        "Lower-case the text. True for uncased models.",
        resume=True,
        cache_key=True,
    )
    strip_accents: bool | None = flag(
        None,
        "Strip accents; default: as --do_lower_case.",
        resume=True,
        cache_key=True,
    )


@dataclasses.dataclass(frozen=True)
class Text:
    """Vocabulary and normalization."""

    vocab_file: str | None = flag(
        None, "Vocabulary, one token per line.", required=True, path=True
    )
    casing: Casing = group(Casing)

    @property
    def do_lower_case(self) -> bool:
        """--do_lower_case."""
        return self.casing.do_lower_case

    @property
    def strip_accents(self) -> bool | None:
        """--strip_accents."""
        return self.casing.strip_accents

    @property
    def tokenizer_arguments(self) -> tuple[str, bool, bool | None]:
        """Vocabulary file and casing, in the order of every tokenizer."""
        return self.vocab_file, self.do_lower_case, self.strip_accents
