"""Fractions that describe records, and warnings of a suspicious corpus."""

from collections.abc import Mapping

import numpy as np

from bert.data.pretraining.settings import InstanceSettings

_SENTENCE = 25  # tokens of an average sentence, as on English Wikipedia


def fractions(
    counts: Mapping[str, float], max_seq_length: int
) -> dict[str, float]:
    """Returns fractions that describe the records, each from 0 to 1."""
    predictions = counts["predictions"]
    return {
        "unknown": counts["unknown_tokens"] / counts["tokens"],
        "fill": counts["row_tokens"] / (counts["records"] * max_seq_length),
        "predicted": predictions / counts["row_tokens"],
        "masked": counts["predictions_masked"] / predictions,
        "random": counts["predictions_random"] / predictions,
        "random_next": counts["random_next"] / counts["instances"],
        "continued": counts["continued_lines"] / counts["sentences"],
    }


def usual_random_next(settings: InstanceSettings) -> float:
    """Fraction of random pairs to expect of one sentence per line.

    A chunk of a single sentence has no second segment, so its pair is always
    random. The tokens of a sentence are assumed to have a gamma distribution
    of shape 2. On English Wikipedia the fraction is within 0.06 of
    this estimate for 32 to 512 tokens.
    """
    targets = np.arange(2, settings.max_seq_length - 2)  # tokens of a chunk
    weights = np.full(len(targets), settings.short_seq_prob / len(targets))
    weights[-1] += 1.0 - settings.short_seq_prob

    # A document with a smaller target has more chunks.
    chunks = weights / (targets + _SENTENCE / 2)
    x = 2.0 * targets / _SENTENCE
    is_single = (1.0 + x) * np.exp(-x)
    return float(0.5 + 0.5 * (chunks @ is_single) / chunks.sum())


def warnings(
    counts: Mapping[str, float], settings: InstanceSettings
) -> list[str]:
    """Returns warnings about a suspicious corpus, one line each."""
    found = fractions(counts, settings.max_seq_length)
    lines = []
    if found["unknown"] > 0.01:
        lines.append(
            f"{found['unknown']:.1%} of the tokens are [UNK]: does the "
            "vocabulary match the language and the casing?"
        )

    # These signs of a wrong layout are reported in one warning.
    layout = []
    per_document = counts["sentences"] / counts["documents"]
    if per_document < 2:
        layout.append(f"{per_document:.1f} lines per document")
    if found["continued"] > 0.25:
        layout.append(
            f"{found['continued']:.0%} of the lines continue the previous line"
        )
    usual = usual_random_next(settings)
    if found["random_next"] > usual + (1.0 - usual) / 4:
        layout.append(
            f"{found['random_next']:.0%} of the pairs are random (usual: "
            f"{usual:.0%})"
        )

    if found["fill"] < 0.5 and not layout:
        better = "--pack_sequences"
        if settings.pack_sequences:
            better = "a larger --max_predictions_per_seq"
        lines.append(
            f"the records are {found['fill']:.0%} full: a smaller "
            f"--max_seq_length or {better} wastes less"
        )
    if layout:
        lines.append(
            f"{', '.join(layout)}: the corpus needs one sentence per line and "
            "a blank line between documents; if it is raw text, run "
            "prepare_corpus.py first"
        )

    if found["predicted"] < 0.8 * settings.masked_lm_prob:
        lines.append(
            f"{found['predicted']:.1%} of the tokens are predicted instead of "
            f"{settings.masked_lm_prob:.0%}: raise --max_predictions_per_seq"
        )
    return lines
