"""The words for each masked position of a text, in one call."""

from bert.common.errors import UserError
from bert.data.text import vocabulary
from bert.data.text.columns import strings
from bert.data.text.tokenizer import Tokenizer
from bert.models import builders
from bert.models.loading import Encoder, config_of, load_pair
from bert.tasks.fill_mask import run as masks

Loaded = tuple[Encoder, Tokenizer]
_HEAD = "cls/predictions/"


def fill_mask(
    text: str,
    model: str | Loaded,
    top_k: int = 5,
    words: str | list[str] | None = None,
) -> list[list[tuple[str, float]]]:
    """Predicts the words for each `[MASK]` of a text.

        bert.fill_mask("the [MASK] sees", "model")[0]  # [("cat", 0.3), ...]

    Args:
        text: a text with one or several `[MASK]`.
        model: path of a model with a masked-LM head, as for `load_encoder`;
            or its encoder and tokenizer. The head is that of the path, also
            if the encoder was trained since.
        top_k: number of words for each mask.
        words: return the probabilities of these words instead.

    Returns:
        for each mask, (word, probability), best first.

    Raises:
        UserError: there is no mask or no such head, the text is too long, or
            a word is not a token of the vocabulary.
    """
    if top_k < 1:
        raise UserError(f"top_k={top_k}", expected="1 or more")
    if not isinstance(text, str):
        raise UserError(f"text is {text!r:.60}", expected="a str")
    chosen = [] if words is None else strings(words, "words")
    if words is not None and not chosen:
        raise UserError("no words", expected="at least one")

    # A new encoder has no checkpoint, so no head.
    encoder, tokenizer = load_pair(model)
    path, weights = "the encoder", ()
    if encoder.checkpoint:
        path, weights = encoder.checkpoint.path, encoder.checkpoint.values
    if not any(name.startswith(_HEAD) for name in weights):
        raise UserError(
            "no masked-LM head",
            path=path,
            expected="a checkpoint of pre-training",
        )
    if vocabulary.MASK not in text:
        raise UserError(
            f"{text[:60]!r} has no mask",
            expected=f"{vocabulary.MASK} in the position of a word",
        )

    # The arguments are checked before the network is built.
    tokens = masks.tokenize(text, tokenizer.exact)
    masks.check_length(tokens, config_of(encoder))
    chosen = masks.tokens_of_words(chosen, tokenizer.exact)
    network = builders.masked_lm(encoder)
    return masks.fill(network, tokenizer.exact, tokens, top_k, chosen)
