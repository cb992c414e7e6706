"""Settings of tokenization; each field is a flag."""

import dataclasses

from bert.common.flags import flag, group
from bert.data.text.tokenizer import Tokenizer

CASING_OF_MODEL = {  # changes of `Casing`, where a model says it
    "do_lower_case": {
        "default": None,
        "help": "Lower-case the text. Default: as recorded in the checkpoint, "
        "else guessed from its vocabulary.",
    },
    "strip_accents": {
        "default": None,
        "help": "Strip accents. Default: as recorded in the checkpoint, else "
        "as --do_lower_case.",
    },
}


@dataclasses.dataclass(frozen=True)
class Casing:
    """Normalization of text."""

    do_lower_case: bool = flag(
        True,
        "Lower-case the text. True for uncased models.",
        resume=True,
    )
    strip_accents: bool | None = flag(
        None,
        "Strip accents; default: as --do_lower_case.",
        resume=True,
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
