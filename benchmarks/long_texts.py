"""Writes long texts with labels: articles on people, and their professions.

    python -m benchmarks.long_texts CORPUS FOLDER

CORPUS has a sentence a line and a blank line between articles, as in the
original. A text is an article without its first sentence, which names the
profession. FOLDER gets train.csv and dev.csv.
"""

import csv
import itertools
import os
import random
import re
import sys

from bert.common import storage

_WORDS = range(250, 800)  # of an article
_TRAIN, _DEV = 600, 300
_PROFESSIONS = {
    "politician": "politician",
    "player": "player",
    "footballer": "player",
    "writer": "writer",
    "novelist": "writer",
    "poet": "writer",
    "journalist": "writer",
    "singer": "musician",
    "musician": "musician",
    "composer": "musician",
    "actor": "actor",
    "actress": "actor",
    "officer": "soldier",
    "general": "soldier",
}


def articles(corpus: str, words: range) -> list[tuple[str, list[str]]]:
    """Text and professions of each article on a person.

    Args:
        corpus: the file.
        words: lengths of the texts.
    """
    rows = []
    with storage.open_text(corpus) as file:
        for is_blank, lines in itertools.groupby(file, str.isspace):
            first, *others = lines
            text = " ".join(" ".join(others).split())
            tells = re.search(r"\b(?:is|was) an? (.{0,80})", first)
            if is_blank or not tells or text.count(" ") + 1 not in words:
                continue

            told = re.findall("[a-z]+", tells[1])
            known = [_PROFESSIONS[x] for x in told if x in _PROFESSIONS]
            rows += [(text, known)] if known else []
    return rows


def main(corpus: str, folder: str) -> None:
    """Writes both files."""
    rows = [(text, known[0]) for text, known in articles(corpus, _WORDS)]
    random.Random(1).shuffle(rows)
    dev = rows[_TRAIN : _TRAIN + _DEV]
    for name, part in (("train", rows[:_TRAIN]), ("dev", dev)):
        path = os.path.join(folder, f"{name}.csv")
        with open(path, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([("text", "label"), *part])
        print(f"{path}: {len(part):,} articles")


if __name__ == "__main__":
    main(*sys.argv[1:])
