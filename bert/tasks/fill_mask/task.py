"""Masked words: a text with [MASK] -> the most probable words.

No TensorFlow is imported.
"""

from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bert.common.errors import UserError
from bert.common.formats.json_files import Json
from bert.data.postprocessing import softmax
from bert.data.sequences import Encoded, join_pair
from bert.data.text import tokenization, vocabulary
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.task_heads import MASKED_LM
from bert.tasks.task import Task

TEXT, MASKS = "text", "masks"


class MaskedWords(Task):
    """Prediction of the masked words of a text.

    Args:
        tokenizer: the model's tokenizer.
        max_length: int. Longest sequence in tokens; longer texts are
            truncated.
        top_k: int. Number of words for each mask. Default: 5.
        words: sequence of str. Candidate tokens, all of which are returned.
            Default: (), all tokens.
    """

    name = "fill_mask"
    head, num_outputs = MASKED_LM, None
    inputs = (TEXT,)

    def __init__(
        self,
        tokenizer: Tokenizer,
        max_length: int,
        top_k: int = 5,
        words: Sequence[str] = (),
    ):
        self._tokenizer, self.max_length = tokenizer.exact, max_length
        vocab = tokenizer.vocab
        self._candidates = [vocab[word] for word in words]
        self._count = len(words) or min(top_k, len(vocab))

    @classmethod
    def from_model(cls, model: ModelFolder) -> Self:
        """The task of a pre-trained model."""
        return cls(model.tokenizer, model.max_length)

    def encode(self, examples: list[dict[str, str]]) -> list[Encoded]:
        """Converts texts to a sequence for each mask.

        Args:
            examples: dicts of `text`.
        """
        vocab = self._tokenizer.vocab
        cls, sep = vocab[vocabulary.CLS], vocab[vocabulary.SEP]
        encoded = []

        for example in examples:
            tokens = tokenize(example[TEXT], self._tokenizer)
            kept = tokens[: self.max_length - 2]
            ids = self._tokenizer.convert_tokens_to_ids(kept)
            row = join_pair(ids, [], cls, sep)

            masks = [
                i for i, token in enumerate(kept, 1) if token == vocabulary.MASK
            ]
            encoded.append(
                Encoded(
                    [row] * len(masks),
                    len(tokens) + 2,
                    len(kept) < len(tokens),
                    positions=masks,
                )
            )
        return encoded

    def combine(
        self, encoded: Encoded, outputs: list[NDArray]
    ) -> list[list[tuple[str, float]]]:
        """Lists the best words for each mask.

        Args:
            encoded: the text.
            outputs: logits, float32 [V], of each mask.

        Returns:
            for each mask a list of (word, probability), the best first.
        """
        words = self._tokenizer.inv_vocab
        found = []
        for probabilities in map(softmax, outputs):
            ids = np.array(self._candidates or range(len(probabilities)))
            order = np.argsort(-probabilities[ids], kind="stable")
            order = order[: self._count]
            # A config may have more ids than the vocabulary.
            best = ids[order].tolist()
            found.append(
                [
                    (words.get(i, f"id {i}"), float(probabilities[i]))
                    for i in best
                ]
            )
        return found

    def decode(
        self,
        encoded: Sequence[Encoded],
        results: Sequence[list[list[tuple[str, float]]]],
    ) -> list[dict[str, Json]]:
        """Converts words to predictions.

        Args:
            encoded: N texts.
            results: results of `combine`.

        Returns:
            a dict for each text: `masks`, for each mask a list of dicts of
            word and probability, the best first.
        """
        return [
            {
                MASKS: [
                    [{"word": word, "probability": p} for word, p in words]
                    for words in masks
                ]
            }
            for masks in results
        ]


def tokenize(sentence: str, tokenizer: tokenization.FullTokenizer) -> list[str]:
    """Splits a sentence into tokens, keeping [MASK] intact."""
    parts = sentence.split(vocabulary.MASK)
    tokens = tokenizer.tokenize(parts[0])
    for part in parts[1:]:
        tokens += [vocabulary.MASK, *tokenizer.tokenize(part)]
    return tokens


def tokens_of_words(
    words: Sequence[str], tokenizer: tokenization.FullTokenizer
) -> list[str]:
    """Looks up the token of each word, for `MaskedWords`.

    Args:
        words: list of str. The words.
        tokenizer: the model's tokenizer.

    Raises:
        UserError: a word is not a single token of the vocabulary.
    """
    found = []
    for word in words:
        is_token = word in tokenizer.vocab
        tokens = [word] if is_token else tokenizer.tokenize(word)
        if len(tokens) != 1 or (not is_token and tokens == [vocabulary.UNK]):
            raise UserError(
                f"{word!r} has the tokens {' '.join(tokens)}",
                expected="a word that is a token of the vocabulary",
            )
        found += tokens
    return found


def check_length(encoded: Encoded, max_positions: int) -> None:
    """Rejects a sentence that is too long for the network.

    Args:
        encoded: the sentence.
        max_positions: int. Number of positions of the network.

    Raises:
        UserError: it has more tokens, with [CLS] and [SEP].
    """
    if encoded.num_tokens > max_positions:
        raise UserError(
            f"a sentence has {encoded.num_tokens} tokens",
            expected=f"at most {max_positions} (max_position_embeddings)",
        )
