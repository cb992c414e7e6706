"""Held-out losses after training on our records and on the original's.

    python -m benchmarks.records_training ORIGINAL CORPUS VOCABULARY CONFIG \
        [STEPS SEEDS]

ORIGINAL is a folder with `create_pretraining_data.py` and `tokenization.py` of
bert-tensorflow 1.0.4, which import `tensorflow.compat.v1`. Every 50th document
of the corpus is held out; both sides are evaluated on the same records of
these, which the original's script makes. A seed is that of the records and of
the training.
"""

import functools
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from benchmarks import by_seed
from bert.data.corpus import documents

ROOT = pathlib.Path(__file__).parents[1]
HELD_OUT_EVERY = 50  # documents
METRICS = ("loss", "masked_lm_loss", "next_sentence_loss")
LENGTHS = ("--max_seq_length=128", "--max_predictions_per_seq=20")


def measure(
    original: str,
    corpus: str,
    vocab_file: str,
    config_file: str,
    steps: int,
    seeds: int,
    batch_size: int = 32,
) -> dict:
    """Trains on the records of both scripts.

    Args:
        original: folder of the original's script.
        corpus: text, with blank lines between documents.
        vocab_file: an uncased vocabulary.
        config_file: config of the model.
        steps: number of training steps.
        seeds: number of seeds.
        batch_size: sequences of a step.

    Returns:
        side -> losses, as `by_seed.compare` describes them.
    """
    scripts = {"ours": str(ROOT), "original": original}
    with tempfile.TemporaryDirectory() as folder:
        texts = split(corpus, folder)
        held_out = f"{folder}/held_out.tfrecord"
        _create(original, texts[0], held_out, vocab_file, 1)

        def run(side: str, seed: int, own: str) -> dict[str, float]:
            records, model = f"{own}/{side}.tfrecord", f"{own}/{side}"
            _create(scripts[side], texts[1], records, vocab_file, seed)
            start = time.perf_counter()
            flags = {
                "input_file": records,
                "eval_input_file": held_out,
                "bert_config_file": config_file,
                "output_dir": model,
                "train_batch_size": batch_size,
                "eval_batch_size": batch_size,
                "num_train_steps": steps,
                "num_warmup_steps": steps // 10,
                "learning_rate": 1e-3,
                "random_seed": seed,
            }
            run_script(
                ROOT / "run_pretraining.py",
                *("--do_train", "--do_eval", "--do_lower_case", *LENGTHS),
                *(f"--{key}={value}" for key, value in flags.items()),
            )
            seconds = time.perf_counter() - start
            return {"seconds": seconds, **by_seed.results(model)}

        return by_seed.compare(
            f"{steps} steps of pre-training",
            METRICS,
            {side: functools.partial(run, side) for side in scripts},
            range(1, seeds + 1),
        )


def split(corpus: str, folder: str) -> tuple[str, str]:
    """Writes the held-out documents, and the others."""
    paths = f"{folder}/held_out.txt", f"{folder}/train.txt"
    with open(paths[0], "wb") as held_out, open(paths[1], "wb") as train:
        for number, text in enumerate(documents.documents(corpus)):
            file = train if number % HELD_OUT_EVERY else held_out
            file.write(text + b"\n")
    return paths


def _create(
    folder: str, text: str, records: str, vocab_file: str, seed: int
) -> None:
    """Runs the script of a folder, with the defaults of both scripts."""
    run_script(
        pathlib.Path(folder).resolve() / "create_pretraining_data.py",
        *LENGTHS,
        f"--input_file={text}",
        f"--output_file={records}",
        f"--vocab_file={pathlib.Path(vocab_file).resolve()}",
        f"--random_seed={seed}",
        "--do_lower_case",
        "--dupe_factor=10",
    )


def run_script(script: pathlib.Path, *words: str) -> None:
    """Runs a script in its folder; ends with its errors if it fails."""
    done = subprocess.run(
        [sys.executable, str(script), *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=script.parent,
    )
    if done.returncode:
        raise SystemExit(f"{script} failed:\n{done.stderr[-2000:]}")


def main() -> None:
    """Prints a JSON line for each run, and a summary."""
    original, corpus, vocab_file, config_file, *counts = sys.argv[1:]
    steps, seeds = map(int, counts or ("1000", "3"))
    result = measure(original, corpus, vocab_file, config_file, steps, seeds)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
