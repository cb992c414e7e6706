"""Lengths of texts, and of those that are cut to --max_seq_length."""

import dataclasses
import json

from common import storage
from common.progress import say


@dataclasses.dataclass
class Lengths:
    """Lengths of texts in tokens, special ones included.

    Attributes:
        max_seq_length: tokens of a sequence; longer texts are cut.
        texts, cut: number of texts, and of those that are cut.
        longest: tokens of the longest text.
    """

    max_seq_length: int
    texts: int = 0
    cut: int = 0
    longest: int = 0

    def add(self, tokens: int) -> None:
        """Counts a text of this number of tokens."""
        self.texts += 1
        self.cut += tokens > self.max_seq_length
        self.longest = max(self.longest, tokens)

    def log(self, path: str) -> None:
        """Warns about the texts of a file that are cut, if there are any."""
        if self.cut:
            say(
                f"warning: {path}: {self.cut:,} of {self.texts:,} texts are "
                f"longer than {self.max_seq_length} tokens (longest "
                f"{self.longest:,}) and were cut; see --max_seq_length"
            )


def read(path: str) -> Lengths | None:
    """Reads what `write` wrote; None if it cannot be read."""
    try:
        with storage.open_text(path) as file:
            return Lengths(**json.load(file))
    except (OSError, ValueError, TypeError):
        return None


def write(path: str, lengths: Lengths) -> None:
    """Writes the lengths beside the records, which a later run reuses."""
    storage.write_whole(path, json.dumps(dataclasses.asdict(lengths)) + "\n")
