"""Pre-training model: encoder and heads."""

import keras
from keras import ops

from bert.data import features
from bert.modeling import heads
from bert.modeling.config import BertConfig
from bert.modeling.encoder import build_encoder
from bert.modeling.task_heads import NEXT_SENTENCE


def build_pretraining_model(
    config: BertConfig,
    seed: int = 12345,
    packed: bool = False,
    encoder: keras.Model | None = None,
) -> keras.Model:
    """Builds the encoder with masked LM and next-sentence heads.

    Args:
        config: BertConfig. Sizes of the network.
        seed: int. Seed of the initial weights. Default: 12345.
        packed: bool. Whether a row holds several sequences. Default: False.
        encoder: keras.Model or None. Encoder with this config. Default: None,
            a new encoder.

    Returns:
        Functional model that takes the encoder's inputs and
        `masked_lm_positions`, int32 [B, P], and returns a dict:
            masked_lm_logits: float32 [B, P, V].
            next_sentence_logits: float32 [B, 2]; [B, K, 2] if `packed`.
                0 = next sentence, 1 = random.
    """
    encoder = encoder or build_encoder(config, seed, packed)
    positions = keras.Input(
        (None,), dtype="int32", name=features.MASKED_LM_POSITIONS
    )

    first = ops.zeros_like(positions[:, :1])  # [CLS]
    if packed:
        first = encoder.input[features.NEXT_SENTENCE_POSITIONS]

    # The pooler reads `[CLS]`, the masked LM head the masked positions.
    read = encoder(
        encoder.input, positions=ops.concatenate([first, positions], axis=1)
    )

    masked_lm = heads.MaskedLMHead(config, seed)
    next_sentence = heads.OutputHead(config, seed, 2, NEXT_SENTENCE)

    return keras.Model(
        {**encoder.input, features.MASKED_LM_POSITIONS: positions},
        {
            "masked_lm_logits": masked_lm(
                read["sequence_output"], read["word_embeddings"]
            ),
            "next_sentence_logits": next_sentence(read["pooled_output"]),
        },
        name="pretraining",
    )
