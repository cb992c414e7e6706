"""Contexts with choices that a small network can learn."""

import csv
import random

S = 17
LIKES = {
    "cat": "milk",
    "dog": "bones",
    "bird": "seeds",
    "cow": "grass",
    "bear": "honey",
}
WORDS = "the old red small it likes eats wants .".split()
HEADER = (
    ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,"
    "ending0,ending1,ending2,ending3,label"
).split(",")
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY += [*LIKES, *LIKES.values(), *WORDS]


def rows(count, seed):
    """Context, choices and label: what the animal of the context likes."""
    rng = random.Random(seed)
    for _ in range(count):
        animals = rng.sample(list(LIKES), 4)
        label = rng.randrange(4)
        context = f"The {rng.choice(['old', 'red', 'small'])} {animals[label]}."
        verbs = rng.choices(["likes", "eats", "wants"], k=4)
        found = [f"{v} {LIKES[a]}." for v, a in zip(verbs, animals)]
        yield context, found, label


def write_csv(path, count, seed, labelled=True):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER if labelled else HEADER[:-1])
        for number, (context, choices, label) in enumerate(rows(count, seed)):
            row = [number, "lsmdc-1", 7, f"{context} It", context, "It", "gold"]
            writer.writerow([*row, *choices, *[label] * labelled])


def flags_of(folder, **changed):
    flags = {
        "vocab_file": folder / "vocab.txt",
        "bert_config_file": folder / "config.json",
        "output_dir": folder / "run",
        "max_seq_length": S,
        "train_batch_size": 31,
        "eval_batch_size": 29,
        **changed,
    }
    return [f"--{name}={value}" for name, value in flags.items()]
