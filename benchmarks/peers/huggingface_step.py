"""Transformers on PyTorch, for benchmarks.peers_in_turns.

    python huggingface_step.py TASK CONFIG.json PRECISION MODE B S P

TASK is `train` or `infer`, PRECISION `float32` or `bfloat16`, MODE `eager` or
`compiled`. Runs in the environment that `make peers` installs.
"""

import contextlib
import sys

import numpy as np
import torch
import transformers
from batches import encoder_batch, training_batch

from serve import serve

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def tensors(arrays: dict) -> dict:
    """Tensors under the input names of transformers."""
    names = {"input_mask": "attention_mask", "segment_ids": "token_type_ids"}
    return {
        names.get(name, name): torch.from_numpy(array.astype(np.int64)).to(
            DEVICE
        )
        for name, array in arrays.items()
    }


def training_step(model, arrays: dict, autocast):
    """Returns a function that takes a step and returns the loss."""
    batch = tensors(arrays)
    labels = torch.full_like(batch["input_ids"], -100)
    labels.scatter_(
        1, batch.pop("masked_lm_positions"), batch.pop("masked_lm_ids")
    )
    batch["labels"] = labels
    batch["next_sentence_label"] = batch.pop("next_sentence_labels")[:, 0]
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=1e-4, weight_decay=0.01, fused=True
    )

    def step() -> float:
        with autocast():
            loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def make(task, path, precision, mode, *sizes):
    """Returns the function to run, and versions."""
    torch.manual_seed(1)
    config = transformers.BertConfig.from_json_file(path)
    config.hidden_act = "gelu_new"  # the tanh form, as in the original
    kinds = {
        "train": transformers.BertForPreTraining,
        "infer": transformers.BertForSequenceClassification,
    }
    model = kinds[task](config).to(DEVICE).train(task == "train")
    if mode == "compiled":
        model = torch.compile(model)
    autocast = contextlib.nullcontext
    if precision == "bfloat16":
        autocast = lambda: torch.autocast(DEVICE, torch.bfloat16)  # noqa: E731
    versions = {
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
        "device": DEVICE,
    }
    if task == "train":
        arrays = training_batch(config.vocab_size, *sizes)
        return training_step(model, arrays, autocast), versions

    def infer(batch_size: int, length: int) -> float:
        batch = tensors(encoder_batch(config.vocab_size, batch_size, length))
        with torch.inference_mode(), autocast():
            return model(**batch).logits.sum().item()

    return infer, versions


if __name__ == "__main__":
    words = sys.argv[1:]
    serve(
        lambda: make(*words[:4], *map(int, words[4:])),
        torch.cuda.max_memory_allocated if DEVICE == "cuda" else int,
    )
