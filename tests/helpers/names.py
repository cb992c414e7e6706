"""A corpus of names with a known grammar; which kind a name is, is told by
the word before it."""

import random

CITIES = "paris jordan georgia sydney vienna"
PEOPLE = "anna paris jordan georgia sydney"
FAMILIES = "smith##son miller brown jordan vienna"
TITLES, PREPOSITIONS = ["mr", "dr"], ["in", "from"]
REST = "the cat dog sees walks likes old red and then , .".split()
TOKENS = ["smith", "##son", "town", "##ship", "north", "unit", "##ed"]


def vocabulary() -> list[str]:
    words = " ".join([CITIES, PEOPLE, FAMILIES.replace("smith##son ", "")])
    words = words.split() + TITLES + PREPOSITIONS + REST + TOKENS
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return [*special, *dict.fromkeys(words)]


def sentence(rng: random.Random, parts: int) -> list[tuple[str, str]]:
    """Words and their labels in BIO."""
    words = []
    for _ in range(parts):
        kind = rng.randrange(3)
        if kind == 0:
            words.append((rng.choice(TITLES), "O"))
            words.append((rng.choice(PEOPLE.split()), "B-PER"))
            if rng.random() < 0.5:
                family = rng.choice(FAMILIES.split()).replace("##", "")
                words.append((family, "I-PER"))
        elif kind == 1:
            words.append((rng.choice(PREPOSITIONS), "O"))
            city = rng.choice([*CITIES.split(), "township"])
            if rng.random() < 0.3:
                words += [("north", "B-LOC"), (city, "I-LOC")]
            else:
                words.append((city, "B-LOC"))
        words += [(rng.choice(REST), "O") for _ in range(rng.randint(1, 3))]
    return words


def write(path, sentences: list[list[tuple[str, str]]], every: int = 5) -> None:
    """Four columns, a document of so many sentences each."""
    lines = []
    for number, words in enumerate(sentences):
        if number % every == 0:
            lines += ["-DOCSTART- -X- -X- O", ""]
        for word, label in words:
            tag = "NAME" if label != "O" else "TITLE" if word in TITLES else "X"
            lines.append(f"{word} {tag} -X- {label}")
        lines.append("")
    path.write_text("\n".join(lines) + "\n")
