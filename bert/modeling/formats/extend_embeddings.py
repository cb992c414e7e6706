"""Extends word embeddings by new words."""

import dataclasses

import numpy as np

from bert.common.errors import UserError
from bert.common.progress import log
from bert.data.text import vocabulary
from bert.data.text.tokenizer import Tokenizer
from bert.modeling.formats.model import Model

_WORDS = "bert/embeddings/word_embeddings"
_OUTPUT_BIAS = "cls/predictions/output_bias"


def extend_vocabulary(
    values: dict[str, np.ndarray], rows: list[int], parts: list[list[int]]
) -> dict[str, np.ndarray]:
    """Adds word embeddings, each the mean of the word's old tokens.

    The masked-LM output shares this table. Its bias, if there is one, is
    extended in the same way.

    Args:
        values: dict. Original name -> array.
        rows: list of int. Id of each new word: an unused one, or V and above.
        parts: list. Ids of the old tokens of each new word.

    Returns:
        Dict: original name -> array, with max(V, largest new id + 1) words.
    """
    changed = dict(values)
    for name in (_WORDS, _OUTPUT_BIAS):
        if name not in values:
            continue
        old = values[name]

        # Unused slots are inside of the table; other words extend it.
        size = max([len(old), *(row + 1 for row in rows)])
        new = np.zeros((size, *old.shape[1:]), old.dtype)
        new[: len(old)] = old

        for row, ids in zip(rows, parts, strict=True):
            new[row] = old[ids].mean(axis=0)
        changed[name] = new

    return changed


def add_words(model: Model, path: str) -> Model:
    """Adds the words of a file to the vocabulary and the embeddings.

    Args:
        model: Model. The model.
        path: str. File with one word per line.

    Returns:
        The model with these words, in memory.

    Raises:
        UserError: the model has no vocabulary, or the tokenizer splits a word.
    """
    tokenizer = model.tokenizer
    if tokenizer is None:
        raise UserError("no vocabulary", path=model.path, fix="--vocab_file")

    ids, exact = tokenizer.vocab, tokenizer.exact
    split = exact.basic_tokenizer.tokenize
    tokens_of = exact.wordpiece_tokenizer.tokenize

    words = vocabulary.read_words(path)
    new = [word for word in words if word not in ids]

    # The tokenizer would never produce the token of a word that it splits.
    for word in new:
        if split(word) != [word]:
            raise UserError(
                f"{word!r} is split into {' '.join(split(word))!r}",
                path=path,
                expected="a word that the tokenizer keeps whole",
            )

    # Parts are old tokens: the new vocabulary contains the word itself.
    tokens, rows = vocabulary.add_words(tokenizer.tokens, new)
    parts = [[ids[token] for token in tokens_of(word)] for word in new]
    reused = sum(row < len(ids) for row in rows)

    # Weights, config and tokenizer must change together.
    values = extend_vocabulary(model.values, rows, parts)
    size = len(values[_WORDS])
    changed = dataclasses.replace(
        model,
        values=values,
        config=dataclasses.replace(model.config, vocab_size=size),
        tokenizer=Tokenizer.of(
            tokenizer.path,
            tokenizer.casing,
            max_length=tokenizer.max_length,
            tokens=tokens,
        ),
    )

    log(
        f"added {len(new)} words: {reused} in unused slots, "
        f"{len(new) - reused} at the end; {len(words) - len(new)} words were "
        "already in the vocabulary"
    )
    return changed
