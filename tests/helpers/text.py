"""A corpus and a vocabulary that tests write."""

import pathlib
import random

WORDS = (
    "the a cat dog bird fish tree house river stone sees finds follows likes "
    "red green old small quick warm and under over near"
).split()
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, ".", "##s"]


def write_corpus(path: pathlib.Path, documents: int, seed: int = 1) -> None:
    """Writes documents of 2 to 9 sentences of 3 to 12 words."""
    rng = random.Random(seed)
    texts = [
        "\n".join(
            " ".join(rng.choices(WORDS, k=rng.randint(3, 12))) + " ."
            for _ in range(rng.randint(2, 9))
        )
        for _ in range(documents)
    ]
    path.write_text("\n\n".join(texts) + "\n")


def write_vocabulary(
    path: pathlib.Path, tokens: list[str] = VOCABULARY
) -> None:
    """Writes tokens, one a line."""
    path.write_text("".join(f"{token}\n" for token in tokens))
