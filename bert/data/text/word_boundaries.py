"""Token ids of pre-segmented text, with word boundaries marked.

    我们 使用 语言 模型  ->  我 ##们 使 ##用 语 ##言 模 ##型

The tokenizer makes each ideograph a separate word, so whole-word masking cannot
use the words of such text. Here each token that continues a word of the corpus
is marked by adding V, the size of the vocabulary, to its id.
"""

import itertools
from collections.abc import Iterator

import numpy as np

from bert.data.text import tokenization


class SegmentedTokenizer:
    """Tokenizes text whose words are separated by white space to marked ids.

    Punctuation marks are separate words, as in other text.

    Args:
        exact: FullTokenizer. The tokenizer of the words.
    """

    def __init__(self, exact: tokenization.FullTokenizer):
        self._exact, self.vocab = exact, exact.vocab
        self._memo = tokenization.WordMemo(self._mark)

    def ids_and_ends(self, lines: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Tokenizes lines; see `fast_tokenization.FastTokenizer`.

        Args:
            lines: list of str. Lines of segmented text.

        Returns:
            (int32 [T], int64 [lines]). Marked ids of all lines, with id + V
            for tokens that continue a word, and the end of each line.
        """
        ids, ends = [], []
        of_lines = [tokenization.split_at_spaces(line) for line in lines]
        self._memo.add(itertools.chain.from_iterable(of_lines))
        for words in of_lines:
            for word in words:
                ids += self._memo[word]
            ends.append(len(ids))
        return np.array(ids, np.int32), np.array(ends, np.int64)

    def _mark(self, words: list[str]) -> Iterator[tuple[int, ...]]:
        """Yields the marked ids of each word."""
        for parts in self._exact.basic_tokenizer.tokenize_words(words):
            ids: list[int] = []

            # The first token of a word is never marked.
            after_punctuation = True
            for part in parts:
                is_punctuation = tokenization.is_punctuation(part[0])
                for token in self._exact.wordpiece_tokenizer.tokenize(part):
                    token_id = self.vocab[token]
                    if not (is_punctuation or after_punctuation):
                        token_id += len(self.vocab)  # continues the word
                    ids.append(token_id)
                    after_punctuation = is_punctuation
            yield tuple(ids)
