"""Classifies text with a network of ours and the tokenizer of `tokenizers`.

    python network_serving.py KIND FOLDER LINES BATCH_SIZE

KIND is `onnx` or `openvino`: FOLDER is that of convert_checkpoint.py --to=onnx,
or the folder `openvino` of an export. Each batch is padded to its longest text.

Prints one JSON line: seconds of the second pass over the lines, and the numbers
of the labels. Runs in the environment that `make peers` installs.
"""

import os
import sys
from collections.abc import Callable

import numpy as np
import second_pass
from tokenizers import BertWordPieceTokenizer

LONGEST = 128
THREADS = len(os.sched_getaffinity(0))


def onnx(folder: str) -> Callable:
    """Inputs by name -> logits, by ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(
        f"{folder}/model.onnx", options, providers=["CPUExecutionProvider"]
    )
    return lambda inputs: session.run(["logits"], inputs)[0]


def openvino(folder: str) -> Callable:
    """The same, by OpenVINO."""
    import openvino

    network = openvino.Core().compile_model(
        f"{folder}/openvino_model.xml",
        "CPU",
        {
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": THREADS,
            "PERFORMANCE_HINT": "LATENCY",
            "NUM_STREAMS": 1,
        },
    )
    request = network.create_infer_request()

    # The network takes packed rows; here each has one sequence.
    def logits(inputs):
        mask = inputs["input_mask"]
        columns = np.arange(mask.shape[1], dtype=np.int32)
        packed = {
            "input_ids": inputs["input_ids"],
            "segment_ids": inputs["segment_ids"],
            "position_ids": np.broadcast_to(columns, mask.shape),
            "sequence_ids": mask,
            "next_sentence_positions": np.zeros_like(mask[:, :1]),
        }
        return request.infer(packed)["output"][:, 0]

    return logits


def main(kind: str, folder: str, path: str, batch_size: str) -> None:
    """Prints one JSON line."""
    tokenizer = BertWordPieceTokenizer(f"{folder}/vocab.txt", lowercase=True)
    tokenizer.enable_truncation(LONGEST)
    tokenizer.enable_padding()
    network = {"onnx": onnx, "openvino": openvino}[kind](folder)
    size = int(batch_size)

    def run(lines: list[str]) -> list[int]:
        labels = []
        for i in range(0, len(lines), size):
            batch = tokenizer.encode_batch(lines[i : i + size])
            inputs = {
                "input_ids": [x.ids for x in batch],
                "input_mask": [x.attention_mask for x in batch],
                "segment_ids": [x.type_ids for x in batch],
            }
            inputs = {k: np.array(x, np.int32) for k, x in inputs.items()}
            labels += network(inputs).argmax(-1).tolist()
        return labels

    second_pass.report(lambda lines: lambda: run(lines), path)


if __name__ == "__main__":
    main(*sys.argv[1:])
