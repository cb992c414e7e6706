"""How pre-training instances are made."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Settings:
    """How instances are made; the names are those of the flags.

    Attributes:
        max_seq_length: S, ids in a row, special tokens included; at least 5.
        max_predictions_per_seq: P, at most so many masked places in a row.
        masked_lm_prob: share of a row's tokens that is masked.
        short_seq_prob: share of documents cut into shorter sequences.
        dupe_factor: how often the corpus is gone through, with other masks.
        do_whole_word_mask: mask all pieces of a word or none.
        word_boundaries: white space in the corpus is where words end, also
            between ideographs.
        max_ngram: mask spans of at most so many words, or pieces.
        smoothing: power of a group's share in the corpus, for its share in
            the records.
        pack_sequences: several instances in a row.
        random_seed: of everything that is drawn.
    """

    max_seq_length: int = 128
    max_predictions_per_seq: int = 20
    masked_lm_prob: float = 0.15
    short_seq_prob: float = 0.1
    dupe_factor: int = 10
    do_whole_word_mask: bool = False
    word_boundaries: bool = False
    max_ngram: int = 1
    smoothing: float = 0.7
    pack_sequences: bool = False
    random_seed: int = 12345
