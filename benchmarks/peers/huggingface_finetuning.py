"""Seconds of one epoch of transformers' Trainer, beside benchmarks.finetuning.

    python huggingface_finetuning.py CLASS MODEL_FOLDER ROWS.npz BATCH_SIZE

ROWS.npz holds `input_ids` and `segment_ids` end to end, `lengths`, and a
column for each label. Batches are padded to their longest row, as transformers'
own collator does it. Runs in the environment that `make peers` installs.
"""

import json
import sys
import tempfile

import numpy as np
import torch
import transformers


def rows_of(path: str) -> list[dict]:
    """The rows of the file, as a Trainer takes them."""
    arrays = dict(np.load(path))
    ends = arrays.pop("lengths").cumsum()[:-1]
    ids = np.split(arrays.pop("input_ids"), ends)
    segments = np.split(arrays.pop("segment_ids"), ends)
    labels = [dict(zip(arrays, row)) for row in zip(*arrays.values())]
    return [
        {"input_ids": a, "token_type_ids": b, **label}
        for a, b, label in zip(ids, segments, labels, strict=True)
    ]


def collate(rows: list[dict]) -> dict[str, torch.Tensor]:
    """Pads to the longest row."""
    longest = max(len(row["input_ids"]) for row in rows)
    shape = (len(rows), longest)
    batch = {
        name: torch.zeros(shape, dtype=torch.long)
        for name in ("input_ids", "token_type_ids", "attention_mask")
    }
    for i, row in enumerate(rows):
        length = len(row["input_ids"])
        batch["attention_mask"][i, :length] = 1
        for name in ("input_ids", "token_type_ids"):
            batch[name][i, :length] = torch.from_numpy(row[name])
    for name in rows[0].keys() - batch.keys():
        batch[name] = torch.tensor([int(row[name]) for row in rows])
    return batch


def main(name: str, folder: str, path: str, batch_size: str) -> None:
    """Prints one JSON line."""
    model = getattr(transformers, name).from_pretrained(folder)
    with tempfile.TemporaryDirectory() as scratch:
        trainer = transformers.Trainer(
            model=model,
            args=transformers.TrainingArguments(
                output_dir=scratch,
                per_device_train_batch_size=int(batch_size),
                num_train_epochs=1,
                learning_rate=2e-5,
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                use_cpu=True,
                disable_tqdm=True,
                dataloader_drop_last=True,
            ),
            train_dataset=rows_of(path),
            data_collator=collate,
        )
        found = trainer.train()
    print(
        json.dumps(
            {
                "seconds": found.metrics["train_runtime"],
                "loss": found.training_loss,
                "transformers": transformers.__version__,
                "torch": torch.__version__,
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
