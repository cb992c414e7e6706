"""Speed of the tokenizers beside that of Hugging Face, one thread each.

    python -m benchmarks.tokenization CORPUS VOCABULARY [cased]
    python -m benchmarks.tokenization generated VOCABULARY [cased]

All compute the ids of every line. Runs alternate. A second JSON line is of
`bert.Tokenizer` with one line a call. `generated` measures texts of several
scripts, whose words are made of the vocabulary's own tokens: real texts
are better where there are any.
"""

import json
import os
import random
import statistics
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import tensorflow as tf
import tokenizers

import bert
from bert.common import text_lines
from bert.data.text import vocabulary
from bert.data.text.tokenizer import Tokenizer

# Language -> its letters, and the white-space words of a line.
LANGUAGES = {
    "German": (("a", "z"), ("ß", "ü"), 20),
    "Russian": (("а", "я"), ("а", "я"), 20),
    "Chinese": (("\u4e00", "\u9fff"), ("\u4e00", "\u9fff"), 5),
    "Thai": (("\u0e01", "\u0e4f"), ("\u0e01", "\u0e4f"), 5),
    "Hindi": (("\u0901", "\u0963"), ("\u0901", "\u0963"), 25),
    "Arabic": (("\u0621", "\u0652"), ("\u0621", "\u0652"), 20),
    "Japanese": (("\u3041", "\u30ff"), ("\u4e00", "\u9fff"), 5),
    "Korean": (("\uac00", "\ud7a3"), ("\uac00", "\ud7a3"), 20),
}
_TOKENS = 60  # of a line
_GRAPH_BATCH = 2048  # lines
_PEER_BATCH = 1000  # lines; it takes longer for all in one call
_SINGLE_LINES = 5000


def generated(vocab_file: str, lines: int) -> dict[str, list[str]]:
    """Makes lines of each language, and `mixed` ones of all of them.

    Languages for which the vocabulary has fewer than 20 tokens are missing.
    """
    tokens = [
        token.removeprefix("##")
        for token in vocabulary.read_vocabulary(vocab_file)
    ]
    rng, texts = random.Random(1), {}
    for language, (*ranges, words) in LANGUAGES.items():
        own = [
            token
            for token in dict.fromkeys(tokens)
            if all(any(a <= c <= b for a, b in ranges) for c in token.lower())
        ]
        if len(own) < 20:
            continue
        texts[language] = [
            _line(rng.choices(own, k=_TOKENS), words, rng) for _ in range(lines)
        ]
    texts["mixed"] = [
        rng.choice(texts[rng.choice([*texts])]) for _ in range(lines)
    ]
    return texts


def _line(tokens: list[str], words: int, rng: random.Random) -> str:
    """Joins tokens to words at random, with a comma and a full stop."""
    ends = set(rng.sample(range(len(tokens)), words))
    line = "".join(
        token + " " * (i in ends) for i, token in enumerate(tokens)
    ).strip()
    return f"{line[:40]}, {line[40:].strip()}."


def measure(
    lines: list[str], vocab_file: str, runs: int = 5, lower: bool = True
) -> dict:
    """Measures MB/s of all, without creating the tokenizers."""
    megabytes = sum(len(line.encode()) for line in lines) / 1e6
    ours = Tokenizer(vocab_file, lower).fast
    graph = Tokenizer(vocab_file, lower).graph
    peer = tokenizers.BertWordPieceTokenizer(
        vocab_file, lowercase=lower, strip_accents=lower
    )
    batches = [
        tf.constant(lines[i : i + _GRAPH_BATCH])
        for i in range(0, len(lines), _GRAPH_BATCH)
    ]
    peer_batches = [
        lines[i : i + _PEER_BATCH] for i in range(0, len(lines), _PEER_BATCH)
    ]
    found, _ = ours.ids_and_ends(lines[:1000])  # warms up, as below
    assert found.tolist() == [
        i
        for line in graph.tokenize(lines[:1000]).to_list()
        for word in line
        for i in word
    ]
    rates = []
    for _ in range(runs):
        times = [time.perf_counter()]
        ours.ids_and_ends(lines)
        times.append(time.perf_counter())
        # Its fastest call, which makes no offsets.
        for some in peer_batches:
            encoded = peer._tokenizer.encode_batch_fast(
                some, add_special_tokens=False
            )
            [line.ids for line in encoded]
        times.append(time.perf_counter())
        for batch in batches:
            graph.tokenize(batch)
        times.append(time.perf_counter())
        rates.append([megabytes / (b - a) for a, b in zip(times, times[1:])])
    medians = [statistics.median(rate) for rate in zip(*rates)]
    return {
        "what": "text to ids, one thread",
        "megabytes": round(megabytes, 2),
        "megabytes_per_second": round(medians[0], 2),
        "peer_megabytes_per_second": round(medians[1], 2),
        "graph_megabytes_per_second": round(medians[2], 2),
        **_ratios("ratio", [a / b for a, b, _ in rates]),
        **_ratios("graph_ratio", [c / b for _, b, c in rates]),
        "tokenizers": tokenizers.__version__,
        "python": sys.version.split()[0],
    }


def measure_single(
    lines: list[str], vocab_file: str, runs: int = 5, lower: bool = True
) -> dict:
    """Measures microseconds of a call; the peer's makes no arrays."""
    ours = bert.Tokenizer(vocab_file, lower, max_length=10**9)
    peer = tokenizers.BertWordPieceTokenizer(
        vocab_file, lowercase=lower, strip_accents=lower
    )
    sides, times = (ours, lambda line: peer.encode(line).ids), []
    for _ in range(runs):
        times.append([])
        for side in sides:
            start = time.perf_counter()
            for line in lines:
                side(line)
            seconds = time.perf_counter() - start
            times[-1].append(1e6 * seconds / len(lines))
    medians = [statistics.median(some) for some in zip(*times)]
    return {
        "what": "text to ids, one line a call",
        "lines": len(lines),
        "microseconds": round(medians[0], 1),
        "peer_microseconds": round(medians[1], 1),
        **_ratios("ratio", [b / a for a, b in times]),
        "tokenizers": tokenizers.__version__,
        "python": sys.version.split()[0],
    }


def _ratios(name: str, ratios: list[float]) -> dict:
    low, high = round(min(ratios), 2), round(max(ratios), 2)
    return {
        name: round(statistics.median(ratios), 2),
        f"{name}_min_max": [low, high],
    }


def main() -> None:
    """Prints two JSON lines for each text."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    source, vocab_file, *casing = sys.argv[1:]
    texts = {source: None}
    if source == "generated":
        texts = generated(vocab_file, 8000)
    for name, lines in texts.items():
        lines = lines or [x.strip() for _, x in text_lines.lines(source)]
        lower = casing != ["cased"]
        for figures in (
            measure(lines, vocab_file, lower=lower),
            measure_single(lines[:_SINGLE_LINES], vocab_file, lower=lower),
        ):
            text = os.path.basename(name)
            print(json.dumps({"text": text, **figures}), flush=True)


if __name__ == "__main__":
    main()
