"""Settings of tokenization; each field is a flag."""

import dataclasses

from bert.common.flags import flag, group
from bert.data.text.tokenizer import Tokenizer


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

    def tokenizer(self) -> Tokenizer:
        """Reads the vocabulary."""
        return Tokenizer(self.vocab_file, **dataclasses.asdict(self.casing))
