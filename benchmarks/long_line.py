r"""Time of create_pretraining_data.py for one long line.

    python -m benchmarks.long_line VOCABULARY

A line of 100, 200,000 or 2,400,000 whole words of the vocabulary is a document;
it and a short one are made into records by one process with `--dupe_factor=1`,
in turns with an import of TensorFlow, which the script does not need. Prints a
JSON line for each long line.
"""

import json
import random
import statistics
import sys
import tempfile

from benchmarks import startup
from bert.data.text import vocabulary

RUNS = 3
SHORT = 100
LONG = (200_000, 2_400_000)


def measure(
    vocab_file: str, long: tuple[int, ...] = LONG, runs: int = RUNS
) -> list[dict]:
    """Times all commands in turns.

    Args:
        vocab_file: path of a vocabulary with whole words.
        long: numbers of words of the long lines.
        runs: number of runs of each.

    Returns:
        for each long line the median seconds, those in addition to the line of
        100 words, and those in addition to the import, of the same turn.
    """
    tokens = [x for x in vocabulary.read_vocabulary(vocab_file) if x.isalpha()]
    rng = random.Random(1)
    commands: dict[str | int, list[str]] = {
        startup.IMPORT: ["-c", startup.IMPORT]
    }
    taken: dict[str | int, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for count in (SHORT, *long):
            with open(f"{folder}/{count}.txt", "w", encoding="utf-8") as file:
                for k in (SHORT, count):  # a document each
                    file.write(" ".join(rng.choices(tokens, k=k)) + "\n\n")
            commands[count] = [
                "create_pretraining_data.py",
                f"--input_file={folder}/{count}.txt",
                f"--output_file={folder}/out.tfrecord",
                f"--vocab_file={vocab_file}",
                *("--dupe_factor=1", "--num_processes=1"),
            ]
        for _ in range(runs):
            for name, words in commands.items():
                taken.setdefault(name, []).append(startup.timed(words)[0])
    return [
        {
            "what": f"records of a line of {count:,} words",
            "seconds": round(statistics.median(taken[count]), 2),
            "beyond_short": startup.beyond(taken[count], taken[SHORT]),
            "beyond_import": startup.beyond(
                taken[count], taken[startup.IMPORT]
            ),
            "python": sys.version.split()[0],
        }
        for count in long
    ]


def main() -> None:
    """Prints a JSON line for each long line."""
    for line in measure(*sys.argv[1:]):
        print(json.dumps(line))


if __name__ == "__main__":
    main()
