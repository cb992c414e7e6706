"""Predictions by transformers, or embeddings by sentence-transformers.

    python huggingface_large_files.py SCRIPT FOLDER LINES OUTPUT PROCESSES

SCRIPT is that of this project which does the same: predict.py or
extract_features.py. Writes JSON lines, or an array. Processes share the cores.
Runs in the environment that `make peers` installs.
"""

import json
import multiprocessing
import sys

import numpy as np
import torch

BATCH = 32  # the default of sentence-transformers


def embed(folder: str, lines: list[str], output: str, processes: int) -> None:
    """Embeds with `encode`, or with its pool of processes."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(folder, device="cpu")
    options = {"batch_size": BATCH, "normalize_embeddings": True}
    if processes > 1:
        options["pool"] = model.start_multi_process_pool(["cpu"] * processes)
    vectors = model.encode(lines, show_progress_bar=False, **options)
    if processes > 1:
        model.stop_multi_process_pool(options["pool"])
    np.save(output, vectors)


def _classify(part: tuple[str, list[str], int]) -> list[dict]:
    import transformers

    folder, lines, num_threads = part
    torch.set_num_threads(num_threads)
    classify = transformers.pipeline(
        "text-classification", folder, device="cpu"
    )
    options = {"batch_size": BATCH, "truncation": True, "top_k": None}
    return classify(lines, **options)


def predict(folder: str, lines: list[str], output: str, processes: int) -> None:
    """Classifies with a pipeline in each process."""
    threads = max(1, torch.get_num_threads() // processes)
    size = -(-len(lines) // processes)
    parts = [
        (folder, lines[i : i + size], threads)
        for i in range(0, len(lines), size)
    ]
    if processes > 1:
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            found = pool.map(_classify, parts)
    else:
        found = [_classify(part) for part in parts]
    with open(output, "w", encoding="utf-8") as file:
        for results in found:
            file.writelines(f"{json.dumps(result)}\n" for result in results)


def main(
    script: str, folder: str, path: str, output: str, processes: str
) -> None:
    """Writes the results of a file."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    compute = predict if script == "predict.py" else embed
    compute(folder, lines, output, int(processes))


if __name__ == "__main__":
    main(*sys.argv[1:])
