"""Classifies text with ONNX Runtime and a network of convert_checkpoint.py.

    python -m benchmarks.onnx_serving FOLDER LINES BATCH_SIZE

FOLDER is that of --to=onnx. Prints one JSON line: seconds of the second pass
over the lines, and the numbers of the labels. Runs in the environment of
`make .venv-peers/onnx/done`.
"""

import functools
import os
import sys

import onnxruntime

import bert
from benchmarks.peers import second_pass


def main(folder: str, path: str, batch_size: str) -> None:
    """Prints one JSON line."""
    tokenizer = bert.Tokenizer(f"{folder}/vocab.txt")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = len(os.sched_getaffinity(0))
    session = onnxruntime.InferenceSession(
        f"{folder}/model.onnx", options, providers=["CPUExecutionProvider"]
    )
    size = int(batch_size)

    def run(lines: list[str]) -> list[int]:
        labels = []
        for i in range(0, len(lines), size):
            batch = tokenizer(lines[i : i + size])
            (logits,) = session.run(["logits"], batch)
            labels += logits.argmax(-1).tolist()
        return labels

    second_pass.report(lambda lines: functools.partial(run, lines), path)


if __name__ == "__main__":
    main(*sys.argv[1:])
