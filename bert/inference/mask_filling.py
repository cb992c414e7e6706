"""Fills in masked words of sentences."""

import sys

from bert.common import text_lines
from bert.common.errors import UserError
from bert.data.text import vocabulary, vocabulary_checks
from bert.inference.predictor import Predictor, load_keras
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.task_heads import MASKED_LM
from bert.tasks.fill_mask import task as masks
from bert.tasks.fill_mask.settings import Settings
from bert.tasks.fill_mask.task import TEXT, MaskedWords


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
    config, tokenizer = model.config, model.tokenizer
    chosen = masks.tokens_of_words(settings.words or (), tokenizer.exact)
    most = config.max_position_embeddings
    task = MaskedWords(tokenizer, most, settings.top_k, chosen)
    encoded = task.encode([{TEXT: x} for x in sentences])
    masks.check_length(max(encoded, key=lambda x: x.num_tokens), most)
    vocabulary_checks.warn(
        tokenizer,
        config.vocab_size,
        model.config_file,
        (x.replace(vocabulary.MASK, " ") for x in sentences),
        model.casing,
    )

    # Loading takes seconds, so it comes after all checks.
    predictor = Predictor(task, load_keras(model, MASKED_LM))
    digits = ".3g" if chosen else ".3f"  # for small probabilities
    computed = predictor.compute(encoded)
    for sentence, (_, found) in zip(sentences, computed):
        print(sentence)
        for words in found:
            shown = [f"{word} {p:{digits}}" for word, p in words]
            print(f"    {', '.join(shown)}")
