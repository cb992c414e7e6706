"""Speed of making and encoding pre-training instances, by stage, in one core.

    python -m benchmarks.instances CORPUS VOCABULARY [FLAG=VALUE ...]

CORPUS has one sentence per line and blank lines between documents, and may end
in .gz; its first 4 MB are used. FLAGs are fields of `InstanceSettings`, such as
max_seq_length=512. Tokenization is not timed. In turns beside it run the
original algorithm (the oracle of the tests) and protobuf, example by example as
in the original script; the ratio is the median over the turns.
"""

import ast
import gzip
import json
import statistics
import sys
import time

import numpy as np
import tensorflow as tf

from bert.data import feature_names
from bert.data.pretraining import draws, dynamic_masking, masking
from bert.data.pretraining import instances as pretraining
from bert.data.pretraining import rows as rows_module
from bert.data.pretraining.settings import InstanceSettings
from bert.data.records import encoding
from bert.data.text.tokenizer import Tokenizer
from tests.helpers import original_instances, pretraining_rows

RUNS = 3
BATCH_SIZE = 256  # of dynamic masking
_BYTES = 4 << 20


def read_documents(path: str, vocab_file: str) -> tuple[list, dict[str, int]]:
    """Returns the documents of a corpus as ids, and the vocabulary."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        text = file.read(_BYTES).decode(errors="ignore")
    tokenizer = Tokenizer(vocab_file).fast
    documents = [
        list(filter(None, tokenizer.ids_of_lines(document.split("\n"))))
        for document in text.split("\n\n")
    ]
    return list(filter(None, documents)), tokenizer.vocab


def time_stages(
    documents: pretraining.TokenizedDocuments,
    number: int,
    settings: InstanceSettings,
    known: masking.Vocabulary,
) -> tuple[dict[str, float], int]:
    """Microseconds per instance of each stage, and the number of instances."""
    start = time.perf_counter()
    pairs = pretraining.draw_pairs(documents, settings, draws.generator(number))
    drawn = time.perf_counter() - start
    encoded = 0.0
    start = time.perf_counter()
    for rows in rows_module.make_rows(documents, number, 0, settings, known):
        before = time.perf_counter()
        encoding.encode_examples(rows)
        encoded += time.perf_counter() - before
    made = time.perf_counter() - start - drawn - encoded
    count = len(pairs.a_starts)
    seconds = {"pairs": drawn, "rows_and_masks": made, "encoding": encoded}
    return {name: 1e6 * x / count for name, x in seconds.items()}, count


def time_original(
    documents: list, number: int, settings: InstanceSettings, known
) -> float:
    """Microseconds per instance of the original algorithm and protobuf."""
    start = time.perf_counter()
    made = original_instances.partition_instances(
        documents, number, 0, settings, known
    )
    for first in range(0, len(made), 1024):
        arrays = pretraining_rows.of_instances(
            made[first : first + 1024], settings
        )
        for row in zip(*(values.tolist() for values in arrays.values())):
            feature = {
                name: tf.train.Feature(
                    float_list=tf.train.FloatList(value=values)
                )
                if arrays[name].dtype == np.float32
                else tf.train.Feature(
                    int64_list=tf.train.Int64List(value=values)
                )
                for name, values in zip(arrays, row, strict=True)
            }
            tf.train.Example(
                features=tf.train.Features(feature=feature)
            ).SerializeToString()
    return 1e6 * (time.perf_counter() - start) / len(made)


def time_dynamic_masking(
    documents: list, settings: InstanceSettings, known
) -> float:
    """Rows a second of masks that are drawn again, in batches."""
    rows = pretraining_rows.make_rows(documents, settings, known)
    names = [
        feature_names.INPUT_IDS,
        feature_names.MASKED_LM_POSITIONS,
        feature_names.MASKED_LM_IDS,
        feature_names.MASKED_LM_WEIGHTS,
        feature_names.SEQUENCE_IDS
        if settings.pack_sequences
        else feature_names.INPUT_MASK,
    ]
    arrays = [
        rows[name].astype(np.int32) if rows[name].dtype == "i8" else rows[name]
        for name in names
    ]
    count = len(arrays[0])
    start = time.perf_counter()
    for first in range(0, count, BATCH_SIZE):
        batch = tuple(values[first : first + BATCH_SIZE] for values in arrays)
        dynamic_masking.remask_records(batch, settings, known, first)
    return count / (time.perf_counter() - start)


def measure(
    documents: list,
    vocab: dict[str, int],
    settings: InstanceSettings,
    runs: int = RUNS,
) -> dict:
    """Times both in turns.

    Args:
        documents: lists of sentences of ids.
        vocab: token -> id.
        settings: lengths and masks.
        runs: number of turns of each.
    """
    known = masking.Vocabulary.of(vocab)
    tokenized = pretraining_rows.tokenized(documents)
    stages, ratios, remasked = [], [], []
    for number in range(runs):
        found, count = time_stages(tokenized, number, settings, known)
        stages.append(found)
        original = time_original(documents, number, settings, known)
        ratios.append(original / sum(found.values()))
        remasked.append(time_dynamic_masking(documents, settings, known))
    microseconds = {
        name: round(statistics.median(x[name] for x in stages), 2)
        for name in stages[0]
    }
    return {
        "what": "instances of one pass, one core",
        "settings": {"S": settings.max_seq_length, "instances": count},
        "microseconds_per_instance": microseconds,
        "instances_per_second": round(1e6 / sum(microseconds.values())),
        "ratio_to_the_original": round(statistics.median(ratios), 1),
        "min_max": [round(f(ratios), 1) for f in (min, max)],
        "remasked_rows_per_second": round(statistics.median(remasked)),
        "numpy": np.__version__,
    }


def main() -> None:
    """Prints one JSON line."""
    path, vocab_file, *flags = sys.argv[1:]
    options = dict(flag.split("=") for flag in flags)
    settings = InstanceSettings(
        **{name: ast.literal_eval(value) for name, value in options.items()}
    )
    documents, vocab = read_documents(path, vocab_file)
    print(json.dumps({**options, **measure(documents, vocab, settings)}))


if __name__ == "__main__":
    main()
