"""Outputs of the BERT of transformers, for comparison with ours.

    python huggingface_outputs.py CLASS FOLDER OUT.npz < sentences

A line holds one sentence, or two separated by a tab. Runs in the environment
that `make peers` installs.
"""

import sys

import numpy as np
import torch
import transformers


def main(name: str, folder: str, path: str) -> None:
    """Writes inputs and outputs of the sentences on standard input."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model, info = getattr(transformers, name).from_pretrained(
        folder, output_loading_info=True
    )
    lines = [line.rstrip("\n").split("\t") for line in sys.stdin]
    firsts = [line[0] for line in lines]
    seconds = [line[1] for line in lines] if len(lines[0]) > 1 else None
    inputs = tokenizer(firsts, seconds, padding=True, return_tensors="pt")
    with torch.no_grad():
        outputs = model.train(False)(**inputs)
    arrays = {f"in_{k}": v.numpy() for k, v in inputs.items()}
    arrays |= {f"out_{k}": v.numpy() for k, v in outputs.items()}
    for kind in ("missing", "unexpected", "mismatched"):
        found = sorted(map(str, info[f"{kind}_keys"]))
        arrays[kind] = np.array(found, dtype="U")
    np.savez(path, labels=str(model.config.id2label), **arrays)


if __name__ == "__main__":
    main(*sys.argv[1:])
