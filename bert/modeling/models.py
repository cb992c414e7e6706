"""Pre-training model: encoder and heads."""

import keras
from keras import ops

from bert.data import features
from bert.modeling import heads
from bert.modeling.config import BertConfig
from bert.modeling.encoder import build_encoder


def build_pretraining_model(
    config: BertConfig,
    seed: int = 12345,
    packed: bool = False,
    encoder: keras.Model | None = None,
) -> keras.Model:
    """Builds the encoder with masked LM and next-sentence heads.

    Args:
        config: sizes.
        seed: of the initial weights.
        packed: whether a row holds several sequences.
        encoder: an encoder of this config; None: a new one.

    Returns:
        a functional model that takes the encoder's inputs and
        `masked_lm_positions`, int32 [B, P], and returns a dict:
            masked_lm_logits: float32 [B, P, V].
            next_sentence_logits: float32 [B, 2]; 0 = follows, 1 = random;
                if `packed`, [B, K, 2].
    """
    encoder = encoder or build_encoder(config, seed, packed)
    positions = keras.Input(
        (None,), dtype="int32", name=features.MASKED_LM_POSITIONS
    )

    first = ops.zeros_like(positions[:, :1])  # [CLS]
    if packed:
        first = encoder.input[features.NEXT_SENTENCE_POSITIONS]

    # `[CLS]` goes to the pooler, the masked positions to the masked LM.
    read = encoder(
        encoder.input, positions=ops.concatenate([first, positions], axis=1)
    )

    masked_lm = heads.MaskedLMHead(config, seed)
    next_sentence = heads.OutputHead(config, seed, 2, "seq_relationship")

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
