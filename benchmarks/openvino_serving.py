"""Classifies text with the folder `openvino` of an export, as predict.py does.

    python -m benchmarks.openvino_serving FOLDER LINES BATCH_SIZE

Prints one JSON line: seconds of the second pass over the lines, and the numbers
of the labels.
"""

import sys

from benchmarks.peers import second_pass
from bert.serving import openvino_model, predict_settings


def main(folder: str, path: str, batch_size: str) -> None:
    """Prints one JSON line."""
    model = openvino_model.load(predict_settings.Settings(model=folder))
    size = int(batch_size)

    def run(lines: list[str]) -> list[int]:
        numbers = []
        for i in range(0, len(lines), size):
            outputs = model.call({"text": lines[i : i + size]})
            numbers += outputs["probabilities"].argmax(-1).tolist()
        return numbers

    second_pass.report(lambda lines: lambda: run(lines), path)


if __name__ == "__main__":
    main(*sys.argv[1:])
