"""The text of an answer as google-research/bert `run_squad.py` finds it.

There the tokenizer does not tell where a piece comes from. The answer's
pieces are looked for in the normalised words around them, and its characters
counted:

    pieces       steve smith
    words        Steve Smith's        -> steve smith ' s
    answer       Steve Smith

Where the counts differ, as with accents that vanish or become characters of
their own, all the words are the answer. `tasks.squad.spans.offsets_text` has
no such exception, and keeps white space as it is.
"""

import re
from collections.abc import Callable

from data.text.tokenization import BasicTokenizer
from tasks.squad.examples import WHITE_SPACE, word_numbers
from tasks.squad.spans import Span, Window

_MEMO_SIZE = 1 << 18


class OriginalText:
    """Gives texts of spans.

    Args:
        tokens: of the vocabulary, in the order of their ids.
        do_lower_case, strip_accents: as the text was tokenized.
        report: told of every text that could not be aligned.
    """

    def __init__(
        self,
        tokens: list[str],
        do_lower_case: bool,
        strip_accents: bool | None,
        report: Callable[[str], None] | None = None,
    ):
        self._tokens, self._report = tokens, report
        self._tokenizer = BasicTokenizer(do_lower_case, strip_accents)
        self._memo: dict[tuple[str, str], str] = {}

    def text_of(
        self, context: str, windows: list[Window]
    ) -> Callable[[Span], str]:
        """As `spans.offsets_text`; windows have ids."""
        numbers = word_numbers(context)
        words = [x for x in re.split(f"[{WHITE_SPACE}]+", context) if x]

        def text_of(span: Span) -> str:
            window = windows[span.window]
            first = numbers[window.starts[span.start]]
            last = numbers[window.starts[span.end]]
            ids = window.ids[span.start : span.end + 1].tolist()
            pieces = " ".join(self._tokens[i] for i in ids)
            pieces = pieces.replace(" ##", "").replace("##", "")
            pieces = " ".join(pieces.split())
            return self._known(pieces, " ".join(words[first : last + 1]))

        return text_of

    def _known(self, pieces: str, words: str) -> str:
        found = self._memo.get((pieces, words))
        if found is None:
            if len(self._memo) >= _MEMO_SIZE:
                self._memo.clear()
            found = self.project(pieces, words)
            self._memo[pieces, words] = found
        return found

    def project(self, pieces: str, words: str) -> str:
        """The part of `words` that normalised pieces come from.

        Args:
            pieces: normalised text, put together from pieces.
            words: the text around it, as it was written.

        Returns:
            a part of `words`, or all of it.
        """
        normal = " ".join(self._tokenizer.tokenize(words))
        start = normal.find(pieces)
        if start < 0:
            return self._whole(words, f"does not hold {pieces!r}")
        in_words = [i for i, c in enumerate(words) if c != " "]
        in_normal = [i for i, c in enumerate(normal) if c != " "]
        if len(in_words) != len(in_normal):
            return self._whole(words, f"is not as long as {normal!r}")
        ranks = {place: rank for rank, place in enumerate(in_normal)}
        first = ranks.get(start)
        last = ranks.get(start + len(pieces) - 1)
        if first is None or last is None:
            return self._whole(words, f"has no place for {pieces!r}")
        return words[in_words[first] : in_words[last] + 1]

    def _whole(self, words: str, why: str) -> str:
        if self._report:
            self._report(f"{words!r} {why}: taken whole")
        return words
