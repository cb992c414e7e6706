"""Settings of pre-training instances."""

import dataclasses

from bert.common.flags import flag


@dataclasses.dataclass(frozen=True)
class InstanceSettings:
    """Settings of the creation of instances; each field is a flag."""

    max_seq_length: int = flag(
        128, "Tokens per sequence, including [CLS] and [SEP].", at_least=5
    )
    max_predictions_per_seq: int = flag(
        20,
        "Maximum number of masked tokens per sequence.",
        at_least=1,
    )
    masked_lm_prob: float = flag(
        0.15,
        "Fraction of the tokens to mask.",
        at_least=0.0,
        at_most=1.0,
    )
    short_seq_prob: float = flag(
        0.1,
        "Fraction of the sequences to make shorter than the maximum.",
        at_least=0.0,
        at_most=1.0,
    )
    dupe_factor: int = flag(
        10, "Number of passes over the corpus, each with new masks.", at_least=1
    )
    do_whole_word_mask: bool = flag(False, "Mask all tokens of a word or none.")
    word_boundaries: bool = flag(
        False,
        "Words for --do_whole_word_mask are separated by white space in the "
        "corpus, also in Chinese.",
    )
    max_ngram: int = flag(
        1,
        "Mask spans of up to this number of words or tokens.",
        at_least=1,
    )
    smoothing: float = flag(
        0.7,
        "For name=path inputs: exponent of the fractions of the groups in the "
        "corpus. Below 1, small groups are sampled more often.",
        at_least=0.0,
        at_most=1.0,
    )
    pack_sequences: bool = flag(
        False, "Pack several instances into a row, with less padding."
    )
    random_seed: int = flag(12345, "Random seed.")
