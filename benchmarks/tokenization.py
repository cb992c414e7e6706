"""Speed of the tokenizer on a corpus, one thread.

    python -m benchmarks.tokenization CORPUS VOCABULARY

Each run starts with an empty memo of words.
"""

import json
import statistics
import sys
import time

from data import corpus, tokenization


def measure(lines: list[str], vocab_file: str, runs: int = 3) -> dict:
    """Median MB/s over runs."""
    megabytes = sum(len(line.encode()) for line in lines) / 1e6
    rates = []
    for _ in range(runs):
        tokenizer = tokenization.FullTokenizer(vocab_file)
        start = time.perf_counter()
        for line in lines:
            tokenizer.convert_tokens_to_ids(tokenizer.tokenize(line))
        rates.append(megabytes / (time.perf_counter() - start))
    return {
        "what": "tokenization to ids, one thread",
        "megabytes": round(megabytes, 2),
        "megabytes_per_second": round(statistics.median(rates), 2),
        "min_max": [round(min(rates), 2), round(max(rates), 2)],
        "python": sys.version.split()[0],
    }


def main() -> None:
    """Prints one JSON line."""
    lines = list(corpus.lines(sys.argv[1]))
    print(json.dumps(measure(lines, sys.argv[2])))


if __name__ == "__main__":
    main()
