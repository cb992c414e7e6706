"""Questions on paragraphs that a small network can learn to answer."""

import json
import pathlib
import random

CITIES = "paris rome oslo lima cairo".split()
NAMES = "anna bob carl dora emma".split()
FILLERS = "the old town was large and the river ran by it .".split()
WORDS = [*CITIES, *NAMES, *FILLERS, "lives", "in", "where", "does", "live"]
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY += [*dict.fromkeys(WORDS), "?", "##s"]


def write(
    path: pathlib.Path, count: int, seed: int, version_2: bool = True
) -> str:
    """Writes a file of `count` paragraphs; returns the path.

    Someone lives somewhere; every third question is about somebody else.
    """
    rng, paragraphs = random.Random(seed), []
    for i in range(count):
        name, other = rng.sample(NAMES, 2)
        city = rng.choice(CITIES).capitalize()
        before, after = (
            " ".join(rng.choices(FILLERS, k=rng.randrange(9))) for _ in range(2)
        )
        context = f"{before} {name.capitalize()} lives in {city}. {after}"
        impossible = version_2 and i % 3 == 2
        answer = {"text": city, "answer_start": context.index(city)}
        qa = {
            "id": f"q{i}",
            "question": f"Where does {other if impossible else name} live?",
            "answers": [] if impossible else [answer],
        }
        if version_2:
            qa["is_impossible"] = impossible
        paragraphs.append({"context": context, "qas": [qa]})
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    return str(path)
