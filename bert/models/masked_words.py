"""Predictions of masked words in one call."""

from bert.common.errors import UserError
from bert.data.text import vocabulary
from bert.data.text.array_inputs import strings
from bert.data.text.tokenizer import Tokenizer
from bert.inference.predictor import Predictor
from bert.modeling.engines.keras_engine import KerasEngine
from bert.modeling.task_heads import MASKED_LM
from bert.models import arguments, builders
from bert.models.loading import Encoder, config_of, load_pair
from bert.tasks.fill_mask import task as masks
from bert.tasks.fill_mask.task import MaskedWords

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

    For the logits of many texts, or to train the head, use `bert.masked_lm`.

    Args:
        text: str. A text with one or several `[MASK]`.
        model: str or (Encoder, Tokenizer). Path or name of a pre-trained
            model, see `load_encoder`, or a loaded pair. The head has the
            weights of the checkpoint, even if the encoder was trained since.
        top_k: int. Number of words for each mask. Default: 5.
        words: str, list or None. Candidate words, whose probabilities are
            returned instead of the `top_k` best words. Default: None.

    Returns:
        a list for each mask: (word, probability) pairs, the best first.

    Raises:
        UserError: The text has no mask or is too long, the checkpoint has no
            masked-LM head, or a word is not a token of the vocabulary.
    """
    arguments.check_count("top_k", top_k)
    if not isinstance(text, str):
        raise UserError(f"text is {text!r:.60}", expected="a str")
    chosen = [] if words is None else strings(words, "words")
    if words is not None and not chosen:
        raise UserError("no words", expected="at least one")

    # An encoder of `new_encoder` has no checkpoint, and so no head.
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
            expected=f"{vocabulary.MASK} in place of a word",
        )

    # The arguments are checked before the network is built.
    most = config_of(encoder).max_position_embeddings
    chosen = masks.tokens_of_words(chosen, tokenizer.exact)
    task = MaskedWords(tokenizer, most, top_k, chosen)
    encoded = task.encode([{masks.TEXT: text}])
    masks.check_length(encoded[0], most)
    head = builders.masked_lm(encoder).get_layer(MASKED_LM)
    predictor = Predictor(task, KerasEngine(encoder, head))
    ((_, found),) = predictor.compute(encoded)
    return found
