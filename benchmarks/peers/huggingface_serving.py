"""Classifies text with the pipeline of transformers, or with ONNX Runtime.

    python huggingface_serving.py KIND FOLDER LINES BATCH_SIZE

KIND is `pipeline`, `pipeline in bfloat16` or `onnx`.

Prints one JSON line: seconds of the second pass over the lines, and the numbers
of the labels. Runs in the environment that `make peers` installs.
"""

import functools
import sys
import tempfile
from collections.abc import Callable

import numpy as np
import second_pass
import torch
import transformers


def pipeline(
    folder: str,
    lines: list[str],
    batch_size: int,
    dtype: torch.dtype = torch.float32,
) -> Callable:
    """The pipeline as documented by transformers."""
    classify = transformers.pipeline(
        "text-classification", folder, device="cpu", dtype=dtype
    )
    numbers = classify.model.config.label2id

    def run() -> list[int]:
        found = classify(lines, batch_size=batch_size)
        return [numbers[answer["label"]] for answer in found]

    return run


def onnx(folder: str, lines: list[str], batch_size: int) -> Callable:
    """The network exported by PyTorch, the tokenizer of transformers."""
    import onnxruntime

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    kind = transformers.AutoModelForSequenceClassification
    model = kind.from_pretrained(folder, attn_implementation="eager")
    names = ["input_ids", "attention_mask", "token_type_ids"]
    example = tokenizer(
        ["one text", "and another one"], return_tensors="pt", padding=True
    )
    with tempfile.TemporaryDirectory() as scratch:
        path = f"{scratch}/model.onnx"
        torch.onnx.export(
            model,
            tuple(example[name] for name in names),
            path,
            input_names=names,
            output_names=["logits"],
            dynamic_axes={name: {0: "batch", 1: "tokens"} for name in names},
            dynamo=False,
        )
        session = onnxruntime.InferenceSession(
            path, providers=["CPUExecutionProvider"]
        )

    def run() -> list[int]:
        labels = []
        for i in range(0, len(lines), batch_size):
            batch = tokenizer(
                lines[i : i + batch_size],
                padding=True,
                truncation=True,
                return_tensors="np",
            )
            (logits,) = session.run(None, {name: batch[name] for name in names})
            labels += np.argmax(logits, -1).tolist()
        return labels

    return run


def main(kind: str, folder: str, path: str, batch_size: str) -> None:
    """Prints one JSON line."""
    make = {
        "pipeline": pipeline,
        "pipeline in bfloat16": functools.partial(
            pipeline, dtype=torch.bfloat16
        ),
        "onnx": onnx,
    }[kind]
    second_pass.report(lambda lines: make(folder, lines, int(batch_size)), path)


if __name__ == "__main__":
    main(*sys.argv[1:])
