"""Fine-tunes with the Trainer of transformers.

    python huggingface_finetuning.py SETTINGS.json

SETTINGS.json has `model_class`, `folder` of the weights, `examples`,
`batch_size`, `learning_rate`, `epochs`, `warmup_proportion`, `weight_decay`,
`seed`, `num_labels`, and `bf16` for mixed precision; to predict held-out
examples also `held_out`, and `logits`, the output file. Files of examples are
`.npz` with concatenated `input_ids` and `segment_ids`, `lengths`, and a column
for each label. Batches are padded to their longest example, as by the collator
of transformers. Prints one JSON line. Runs in the environment that `make peers`
installs.
"""

import json
import sys
import tempfile

import numpy as np
import torch
import transformers


def read_examples(path: str) -> list[dict]:
    """Reads the examples of a file for a Trainer."""
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


def collate(examples: list[dict]) -> dict[str, torch.Tensor]:
    """Pads to the longest example."""
    longest = max(len(x["input_ids"]) for x in examples)
    shape = (len(examples), longest)
    batch = {
        name: torch.zeros(shape, dtype=torch.long)
        for name in ("input_ids", "token_type_ids", "attention_mask")
    }
    for i, example in enumerate(examples):
        length = len(example["input_ids"])
        batch["attention_mask"][i, :length] = 1
        for name in ("input_ids", "token_type_ids"):
            batch[name][i, :length] = torch.from_numpy(example[name])
    for name in examples[0].keys() - batch.keys():
        batch[name] = torch.tensor(np.array([x[name] for x in examples]))
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
                weight_decay=settings["weight_decay"],
                seed=settings["seed"],
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                use_cpu=True,
                bf16=settings["bf16"],
                disable_tqdm=True,
                dataloader_drop_last="held_out" not in settings,
            ),
            train_dataset=read_examples(settings["examples"]),
            data_collator=collate,
        )
        found = trainer.train()
        if "held_out" in settings:
            answered = trainer.predict(read_examples(settings["held_out"]))
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
