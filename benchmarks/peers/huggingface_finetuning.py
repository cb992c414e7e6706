"""Fine-tunes with transformers' Trainer, beside our own benchmarks.

    python huggingface_finetuning.py SETTINGS.json

SETTINGS.json has `model_class`, `folder` of the weights, `rows`, `batch_size`,
`learning_rate`, `epochs`, `warmup_proportion`, `seed`, `num_labels`, `bf16` for
Trainer's mixed precision; and, to answer held-out rows, `held_out` and
`logits`, the file that is written. Files of rows are `.npz` with `input_ids`
and `segment_ids` end to end, `lengths`, and a column for each label. Batches
are padded to their longest row, as transformers' own collator does it. Prints
one JSON line. Runs in the environment that `make peers` installs.
"""

import json
import sys
import tempfile

import numpy as np
import torch
import transformers


def rows_of(path: str) -> list[dict]:
    """The rows of a file, as a Trainer takes them."""
    arrays = dict(np.load(path))
    ends = arrays.pop("lengths").cumsum()[:-1]
    ids = np.split(arrays.pop("input_ids"), ends)
    segments = np.split(arrays.pop("segment_ids"), ends)
    return [
        {
            "input_ids": ids[i],
            "token_type_ids": segments[i],
            **{name: column[i] for name, column in arrays.items()},
        }
        for i in range(len(ids))
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
        batch[name] = torch.tensor(np.array([row[name] for row in rows]))
    return batch


def main(path: str) -> None:
    """Prints one JSON line."""
    with open(path, encoding="utf-8") as file:
        settings = json.load(file)
    transformers.set_seed(settings["seed"])
    options = {}
    if settings["num_labels"]:
        options["num_labels"] = settings["num_labels"]
    model = getattr(transformers, settings["model_class"]).from_pretrained(
        settings["folder"], **options
    )
    with tempfile.TemporaryDirectory() as scratch:
        trainer = transformers.Trainer(
            model=model,
            args=transformers.TrainingArguments(
                output_dir=scratch,
                per_device_train_batch_size=settings["batch_size"],
                per_device_eval_batch_size=settings["batch_size"],
                num_train_epochs=settings["epochs"],
                learning_rate=settings["learning_rate"],
                warmup_steps=settings["warmup_proportion"],
                weight_decay=0.01,
                seed=settings["seed"],
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                use_cpu=True,
                bf16=settings["bf16"],
                disable_tqdm=True,
                dataloader_drop_last="held_out" not in settings,
            ),
            train_dataset=rows_of(settings["rows"]),
            data_collator=collate,
        )
        found = trainer.train()
        if "held_out" in settings:
            answered = trainer.predict(rows_of(settings["held_out"]))
            np.save(settings["logits"], answered.predictions)
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
