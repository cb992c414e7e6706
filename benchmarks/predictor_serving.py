"""Classifies text with the predictor of predict.py and serve.py.

    python -m benchmarks.predictor_serving ENGINE FOLDER LINES BATCH_SIZE

ENGINE is `keras` or `openvino`, FOLDER an export of run_classifier.py. Prints
one JSON line: seconds of the second pass over the lines, and the numbers of the
labels.
"""

import sys

from benchmarks.peers import second_pass
from bert.inference.predictor import Predictor


def main(engine: str, folder: str, path: str, batch_size: str) -> None:
    """Prints one JSON line."""
    predictor = Predictor.open(folder, engine)
    size = int(batch_size)

    def run(lines: list[str]) -> list[int]:
        numbers = []
        for i in range(0, len(lines), size):
            examples = [{"text": text} for text in lines[i : i + size]]
            for prediction in predictor(examples):
                names = [*prediction["probabilities"]]
                numbers.append(names.index(prediction["label"]))
        return numbers

    second_pass.report(lambda lines: lambda: run(lines), path)


if __name__ == "__main__":
    main(*sys.argv[1:])
