"""Settings of the tokenizer; each field is a flag."""

import dataclasses

from bert.common.flags import flag, group
from bert.data.text.casing import Casing
from bert.data.text.tokenizer import Tokenizer


@dataclasses.dataclass(frozen=True)
class Text:
    """Vocabulary and normalization of text."""

    vocab_file: str | None = flag(
        None, "Vocabulary, one token per line.", required=True, path=True
    )
    casing: Casing = group(Casing)

    def tokenizer(self) -> Tokenizer:
        """Reads the vocabulary and returns its tokenizer."""
        return Tokenizer.of(self.vocab_file, self.casing)
