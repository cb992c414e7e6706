"""Predicts the most probable words for the masks of sentences."""

import sys
from collections.abc import Iterable

import numpy as np

from bert.common import text_lines
from bert.common.errors import UserError
from bert.data import features, sequences
from bert.data.postprocessing import softmax
from bert.data.text import tokenization, vocabulary, vocabulary_checks
from bert.modeling.config import BertConfig
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.task_heads import MASKED_LM
from bert.tasks.fill_mask.settings import Settings


def read_sentences(path: str | None) -> list[str]:
    """Reads the sentences.

    Args:
        path: str or None. File with one sentence per line; None for standard
            input.

    Raises:
        UserError: if the file cannot be read, or a sentence has no [MASK].
    """
    name = path or "standard input"
    stream = None if path else sys.stdin.buffer
    lines = [x.strip() for _, x in text_lines.lines(name, stream=stream)]
    for number, line in enumerate(lines, start=1):
        if line and vocabulary.MASK not in line:
            raise UserError(
                f"{line[:60]!r} has no mask",
                path=name,
                line=number,
                expected=f"{vocabulary.MASK} in the position of a word",
            )

    # Skip blank lines, which count in the line numbers above.
    sentences = [line for line in lines if line]
    if not sentences:
        raise UserError(
            "no sentences", path=name, expected="one sentence per line"
        )
    return sentences


def tokenize(sentence: str, tokenizer: tokenization.FullTokenizer) -> list[str]:
    """Splits a sentence into tokens, keeping [MASK] intact."""
    parts = sentence.split(vocabulary.MASK)
    tokens = tokenizer.tokenize(parts[0])
    for part in parts[1:]:
        tokens += [vocabulary.MASK, *tokenizer.tokenize(part)]
    return tokens


def tokens_of_words(
    words: Iterable[str], tokenizer: tokenization.FullTokenizer
) -> list[str]:
    """Looks up the token of each word, for `fill`.

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


def fill(
    model,
    tokenizer: tokenization.FullTokenizer,
    tokens: list[str],
    top_k: int,
    words: list[str] | None = None,
) -> list[list[tuple[str, float]]]:
    """Predicts the best words for each mask of a sentence.

    Args:
        model: the network, see `build_pretraining_model`.
        tokenizer: the model's tokenizer.
        tokens: list of str. The tokens of the sentence.
        top_k: int. Number of words for each mask.
        words: list of str or None. Candidate tokens. Default: all tokens.

    Returns:
        for each mask a list of (word, probability), best first.
    """
    vocab = tokenizer.vocab
    ids, segments = sequences.join_pair(
        tokenizer.convert_tokens_to_ids(tokens),
        [],
        vocab[vocabulary.CLS],
        vocab[vocabulary.SEP],
    )
    masks = [i for i, token in enumerate(ids) if token == vocab["[MASK]"]]
    logits = model(
        {
            features.INPUT_IDS: np.array([ids], np.int32),
            features.INPUT_MASK: np.ones([1, len(ids)], np.int32),
            features.SEGMENT_IDS: np.array([segments], np.int32),
            features.MASKED_LM_POSITIONS: np.array([masks], np.int32),
        }
    )["masked_lm_logits"][0]
    found = softmax(np.asarray(logits))  # [masks, V]

    # Candidates are the whole vocabulary, or --words.
    candidates, most = np.arange(found.shape[1]), min(top_k, len(vocab))
    if words:
        candidates = np.array([vocab[word] for word in words])
        most = len(words)
    order = np.argsort(-found[:, candidates], axis=1, kind="stable")
    best = candidates[order[:, :most]]
    return [
        # A config may have more ids than the vocabulary.
        [(tokenizer.inv_vocab.get(i, f"id {i}"), float(row[i])) for i in ids]
        for ids, row in zip(best.tolist(), found)
    ]


def check_length(tokens: list[str], config: BertConfig) -> None:
    """Rejects a sentence that is too long for the network.

    Raises:
        UserError: it has more tokens, with [CLS] and [SEP], than the network
            has positions.
    """
    if len(tokens) + 2 > config.max_position_embeddings:
        raise UserError(
            f"a sentence has {len(tokens) + 2} tokens",
            expected=f"at most {config.max_position_embeddings} "
            "(max_position_embeddings)",
        )


def print_words(settings: Settings) -> None:
    """Prints each sentence and the best words for its masks.

    Args:
        settings: the settings of the script.

    Raises:
        UserError: if a sentence or a file is invalid.
    """
    model = ModelFolder.open(settings.init_checkpoint, settings)
    model.check_vocabulary()
    model.check()
    sentences = read_sentences(settings.input_file)
    config, tokenizer = model.config, model.tokenizer.exact
    tokenized = [tokenize(sentence, tokenizer) for sentence in sentences]
    chosen = tokens_of_words(settings.words or (), tokenizer)
    check_length(max(tokenized, key=len), config)
    vocabulary_checks.warn(
        model.tokenizer,
        config.vocab_size,
        model.config_file,
        (x.replace(vocabulary.MASK, " ") for x in sentences),
        model.casing,
    )

    # Loading takes seconds, so it comes after all checks.
    network = model.network(MASKED_LM)
    digits = ".3g" if chosen else ".3f"  # for small probabilities
    for sentence, tokens in zip(sentences, tokenized):
        print(sentence)
        for words in fill(network, tokenizer, tokens, settings.top_k, chosen):
            shown = [f"{word} {p:{digits}}" for word, p in words]
            print(f"    {', '.join(shown)}")
