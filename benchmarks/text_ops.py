"""Speed of the in-graph tokenizer beside that of Hugging Face, one thread each.

    python -m benchmarks.text_ops CORPUS VOCABULARY

Both tokenize batches of 1,000 lines in one process, in turns (A B A B ...); a
run is one pass over the corpus. Hugging Face's tokenizer runs as documented and
in its fastest form, without offsets; ratios are relative to the fastest.
"""

import importlib.metadata
import json
import os
import statistics
import sys
import time
from collections.abc import Callable

from bert.data.text.tokenizer import Tokenizer

BATCH = 1000  # lines
RUNS = 7
FASTEST = "hugging face without offsets, one thread"

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import tensorflow as tf  # noqa: E402
import tokenizers  # noqa: E402

from bert.common import text_lines  # noqa: E402


def graph_run(lines: list[str], function: Callable, threads: int) -> Callable:
    """Returns a function that counts the tokens of the corpus with tf.data.

    Args:
        lines: the corpus.
        function: string [B] -> ragged tensors of one shape, ids first.
        threads: number of threads of tf.data.
    """
    options = tf.data.Options()
    options.threading.private_threadpool_size = threads
    options.threading.max_intra_op_parallelism = 1
    dataset = (
        tf.data.Dataset.from_tensor_slices(lines)
        .batch(BATCH)
        .map(
            lambda strings: [x.flat_values for x in function(strings)],
            num_parallel_calls=threads if threads > 1 else None,
        )
        .with_options(options)
    )
    return lambda: sum(len(flat[0]) for flat in dataset.as_numpy_iterator())


def peer_run(lines: list[str], encode: Callable) -> Callable:
    """Returns the same function for the tokenizer of Hugging Face."""
    batches = [lines[i : i + BATCH] for i in range(0, len(lines), BATCH)]
    return lambda: sum(
        len(line.ids)
        for batch in batches
        for line in encode(batch, add_special_tokens=False)
    )


def measure(lines: list[str], vocab_file: str, runs: int = RUNS) -> list[dict]:
    """Times all tokenizers in turns, after one run each to warm up.

    Args:
        lines: the corpus.
        vocab_file: path of the vocabulary.
        runs: number of runs of each.

    Returns:
        one dict for each tokenizer.
    """
    graph = Tokenizer(vocab_file).graph
    peer = tokenizers.BertWordPieceTokenizer(vocab_file, lowercase=True)
    candidates = {
        "graph, one thread": graph_run(lines, lambda s: [graph.tokenize(s)], 1),
        "graph with offsets, one thread": graph_run(
            lines, graph.tokenize_with_offsets, 1
        ),
        "graph, two threads": graph_run(
            lines, lambda s: [graph.tokenize(s)], 2
        ),
        "hugging face, one thread": peer_run(lines, peer.encode_batch),
        FASTEST: peer_run(lines, peer._tokenizer.encode_batch_fast),
    }
    megabytes = sum(len(line.encode()) for line in lines) / 1e6
    rates = {what: [] for what in candidates}
    tokens = {what: run() for what, run in candidates.items()}
    for _ in range(runs):
        for what, run in candidates.items():
            start = time.perf_counter()
            run()
            rates[what].append(megabytes / (time.perf_counter() - start))
    medians = {what: statistics.median(r) for what, r in rates.items()}
    return [
        {
            "what": what,
            "megabytes": round(megabytes, 2),
            "tokens": tokens[what],
            "megabytes_per_second": round(medians[what], 2),
            "min_max": [round(min(rates[what]), 2), round(max(rates[what]), 2)],
            "ratio": round(medians[what] / medians[FASTEST], 2),
            "versions": {
                name: importlib.metadata.version(name)
                for name in ("tensorflow", "tensorflow-text", "tokenizers")
            },
        }
        for what in candidates
    ]


def main() -> None:
    """Prints one JSON line for each tokenizer."""
    numbered = text_lines.lines(sys.argv[1])
    lines = [line.strip() for _, line in numbered if line.strip()]
    for figure in measure(lines, sys.argv[2]):
        print(json.dumps(figure))


if __name__ == "__main__":
    main()
