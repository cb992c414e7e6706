r"""Speed of exported classifiers beside transformers and ONNX Runtime.

    python -m benchmarks.serving EXPORT LINES \
        [PEER_PYTHON PEER_FOLDER [ONNX_PYTHON ONNX_FOLDER]]

EXPORT is a SavedModel of run_classifier.py --export_dir, LINES a file with one
text per line, PEER_FOLDER the same weights for transformers, as written by
convert_checkpoint.py --to=huggingface, ONNX_FOLDER by --to=onnx. "ours" is the
SavedModel; the predictor of predict.py and serve.py runs with Keras and, if
EXPORT/openvino exists, with OpenVINO. The networks of ONNX and OpenVINO also
run in the peers' environment, with `tokenizers`. Batches are 32 lines, or
BATCH_SIZE of the environment, in the order of the file, each padded to its
longest, on all cores. Loading is not counted, and each side classifies all
lines once before it is timed. The labels of the others are compared with those
of EXPORT.
"""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf

from benchmarks.peers import second_pass
from bert.modeling import tf_hub

BATCH_SIZE = int(os.environ.get("BATCH_SIZE", "32"))
RUNS = int(os.environ.get("RUNS", "3"))
PEERS = ("pipeline", "pipeline in bfloat16", "onnx")
_PEERS = Path(__file__).parent / "peers"


class ExportedClassifier:
    """A function from text to label.

    Args:
        answer: the signature of a SavedModel.
        lines: texts.

    Attributes:
        names: all labels.
        labels: the label of each text.
    """

    def __init__(self, answer: Callable, lines: list[str]):
        self._answer, self._lines = answer, lines
        names = answer(text=tf.constant(lines[:1]))["label_names"]
        self.names = [name.decode() for name in names.numpy()[0]]
        self.labels = self.run()

    def run(self) -> list[str]:
        """Classifies all lines."""
        labels = []
        for i in range(0, len(self._lines), BATCH_SIZE):
            texts = tf.constant(self._lines[i : i + BATCH_SIZE])
            labels += self._answer(text=texts)["label"].numpy().tolist()
        return [label.decode() for label in labels]


def commands(
    export: str,
    lines: str,
    peers: tuple[str, str] | None,
    onnx: tuple[str, str] | None,
) -> dict[str, list[str]]:
    """Side -> command that prints seconds and the numbers of the labels."""
    module = [sys.executable, "-m", "benchmarks.predictor_serving"]
    found = {"predictor, keras": [*module, "keras", export]}
    networks = {}
    script = str(_PEERS / "network_serving.py")
    if peers:
        python, folder = peers
        transformers = str(_PEERS / "huggingface_serving.py")
        found |= {kind: [python, transformers, kind, folder] for kind in PEERS}
    if onnx:
        python, folder = onnx
        found["our onnx"] = [python, "-m", "benchmarks.onnx_serving", folder]
        networks["onnx"] = folder

    openvino = os.path.join(export, "openvino")
    if os.path.isdir(openvino):
        found["predictor, openvino"] = [*module, "openvino", export]
        networks["openvino"] = openvino

    # The networks of ours, with the tokenizer of `tokenizers`.
    for kind, folder in networks.items() if peers else ():
        found[f"tokenizers, {kind}"] = [peers[0], script, kind, folder]
    last = [lines, str(BATCH_SIZE)]
    return {side: command + last for side, command in found.items()}


def timed(command: list[str]) -> dict:
    """Runs a command of `commands`."""
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    printed.check_returncode()
    return json.loads(printed.stdout.splitlines()[-1])


def measure(
    export: str,
    lines: str,
    peers: tuple[str, str] | None = None,
    onnx: tuple[str, str] | None = None,
    runs: int = RUNS,
) -> dict:
    """Times all sides in turns.

    Args:
        export, lines: paths of the SavedModel and of the texts.
        peers: Python of the peers and folder of the same weights, or None.
        onnx: Python of ONNX Runtime and folder of the same weights, or None.
        runs: number of runs of each side.
    """
    loaded = tf_hub.load(export, trust_model=True)
    with open(lines, encoding="utf-8") as file:
        texts = file.read().splitlines()
    signature = loaded.signatures["serving_default"]
    own = {"ours": ExportedClassifier(signature, texts)}
    expected, names = own["ours"].labels, own["ours"].names
    others = commands(export, lines, peers, onnx)
    seconds, cpu_seconds, agree = {}, {}, {}
    for _ in range(runs):
        turn = {side: second_pass.timed(x.run) for side, x in own.items()}
        for side, command in others.items():
            turn[side] = timed(command)
            turn[side]["labels"] = [names[i] for i in turn[side]["labels"]]
        for side, found in turn.items():
            seconds.setdefault(side, []).append(found["seconds"])
            cpu_seconds.setdefault(side, []).append(found["cpu_seconds"])
            pairs = zip(expected, found["labels"], strict=True)
            agree[side] = sum(a == b for a, b in pairs)
    ours = statistics.median(seconds["ours"])
    return {
        "what": f"text to label, batches of {BATCH_SIZE}",
        "export": os.path.basename(export),
        "lines": os.path.basename(lines),
        "texts": len(texts),
        "seconds": {
            side: round(statistics.median(some), 3)
            for side, some in seconds.items()
        },
        "cpu_seconds": {
            side: round(statistics.median(some), 3)
            for side, some in cpu_seconds.items()
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
    export, lines, *rest = sys.argv[1:]
    peers, onnx = tuple(rest[:2]) or None, tuple(rest[2:]) or None
    print(json.dumps(measure(export, lines, peers, onnx)))


if __name__ == "__main__":
    main()
