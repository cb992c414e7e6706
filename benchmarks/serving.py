r"""Speed of an exported classifier beside transformers and ONNX Runtime.

    python -m benchmarks.serving EXPORT LINES [PEER_PYTHON PEER_FOLDER]

EXPORT is a SavedModel of run_classifier.py --export_dir, LINES a file with one
text per line, PEER_FOLDER the same weights for transformers, as written by
convert_checkpoint.py --to=huggingface. Batches are 32 lines, or BATCH_SIZE of
the environment, in the order of the file, each padded to its longest, on all
cores. Loading is not counted, and each side classifies all lines once before it
is timed. The labels of the peers are compared with ours.
"""

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import tensorflow as tf

from modeling import hub

BATCH_SIZE = int(os.environ.get("BATCH_SIZE", "32"))
RUNS = 3
PEERS = ("pipeline", "pipeline in bfloat16", "onnx")
_PEER = Path(__file__).parent / "peers" / "huggingface_serving.py"


class ExportedClassifier:
    """A SavedModel from text to label.

    Args:
        export: folder of the SavedModel.
        lines: texts.

    Attributes:
        names: all labels.
        labels: the label of each text.
    """

    def __init__(self, export: str, lines: list[str]):
        loaded = hub.load(export, trust_model=True)
        self._answer = loaded.signatures["serving_default"]
        self._lines = lines
        names = self._answer(text=tf.constant(lines[:1]))["label_names"]
        self.names = [name.decode() for name in names.numpy()[0]]
        self.labels = self._run()

    def seconds(self) -> float:
        """Times a pass over all lines."""
        start = time.perf_counter()
        self._run()
        return time.perf_counter() - start

    def _run(self) -> list[str]:
        labels = []
        for i in range(0, len(self._lines), BATCH_SIZE):
            texts = tf.constant(self._lines[i : i + BATCH_SIZE])
            labels += self._answer(text=texts)["label"].numpy().tolist()
        return [label.decode() for label in labels]


def peer(python: str, kind: str, folder: str, lines: str) -> dict:
    """Runs a peer, which returns seconds and the numbers of the labels.

    Args:
        python: Python of its environment.
        kind: one of `PEERS`.
        folder: folder of its weights.
        lines: path of the file of texts.
    """
    command = [python, _PEER, kind, folder, lines, str(BATCH_SIZE)]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    printed.check_returncode()
    return json.loads(printed.stdout.splitlines()[-1])


def measure(
    export: str,
    lines: str,
    peers: tuple[str, str] | None = None,
    runs: int = RUNS,
) -> dict:
    """Times all sides in turns.

    Args:
        export, lines: paths of the SavedModel and of the texts.
        peers: Python of the peers and folder of the same weights, or None.
        runs: number of runs of each side.
    """
    with open(lines, encoding="utf-8") as file:
        own = ExportedClassifier(export, file.read().splitlines())
    seconds, agree = {"ours": []}, {}
    for _ in range(runs):
        seconds["ours"].append(own.seconds())
        for kind in PEERS if peers else ():
            found = peer(peers[0], kind, peers[1], lines)
            seconds.setdefault(kind, []).append(found["seconds"])
            pairs = zip(own.labels, found["labels"], strict=True)
            agree[kind] = sum(own.names[b] == a for a, b in pairs)
    ours = statistics.median(seconds["ours"])
    return {
        "what": f"text to label, batches of {BATCH_SIZE}",
        "export": os.path.basename(export),
        "lines": os.path.basename(lines),
        "texts": len(own.labels),
        "seconds": {
            side: round(statistics.median(some), 3)
            for side, some in seconds.items()
        },
        "spread": {
            side: [round(min(some), 3), round(max(some), 3)]
            for side, some in seconds.items()
        },
        "ratio": {
            side: round(statistics.median(some) / ours, 2)
            for side, some in seconds.items()
            if side != "ours"
        },
        "same_labels": agree,
        "tensorflow": tf.__version__,
    }


def main() -> None:
    """Prints one JSON line."""
    export, lines, *peers = sys.argv[1:]
    print(json.dumps(measure(export, lines, tuple(peers) or None)))


if __name__ == "__main__":
    main()
