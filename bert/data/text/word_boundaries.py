"""Token ids of pre-segmented text, with word boundaries marked.

    我们 使用 语言 模型  ->  我 ##们 使 ##用 语 ##言 模 ##型

The tokenizer splits off every ideograph, so whole-word masking cannot see the
words of such text. Here each token that continues a word of the corpus is
marked by adding V, the size of the vocabulary, to its id.
"""

import numpy as np

from bert.data.text import tokenization

# Control characters that the tokenizer drops but `str.split` splits at.
_DROPPED = dict.fromkeys([0x0B, 0x0C, *range(0x1C, 0x20), 0x85])


class SegmentedTokenizer:
    """Tokenizes text whose words are separated by white space to marked ids.

    A punctuation mark is a separate word, as in other text.

    Args:
        exact: the tokenizer of its words.
    """

    def __init__(self, exact: tokenization.FullTokenizer):
        self._exact, self.vocab = exact, exact.vocab
        self._memo = tokenization.WordMemo(self._mark)

    def ids_and_ends(self, lines: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """Tokenizes lines, as `fast_tokenization.FastTokenizer` does.

        Args:
            lines: strings.

        Returns:
            int32 [T], marked ids of all lines, id + V where a token continues
            a word; int64 [lines], the end of each line among them.
        """
        ids, ends = [], []
        for line in lines:
            for word in line.translate(_DROPPED).split():
                ids += self._memo[word]
            ends.append(len(ids))
        return np.array(ids, np.int32), np.array(ends, np.int64)

    def _mark(self, word: str) -> tuple[int, ...]:
        basic = self._exact.basic_tokenizer
        ids: list[int] = []

        # The first token of a word is never marked.
        after_punctuation = True
        for part in basic.tokenize(word):
            is_punctuation = tokenization.is_punctuation(part[0])
            for token in self._exact.wordpiece_tokenizer.tokenize(part):
                token_id = self.vocab[token]
                if not (is_punctuation or after_punctuation):
                    token_id += len(self.vocab)  # it continues the word
                ids.append(token_id)
                after_punctuation = is_punctuation
        return tuple(ids)
