"""Trains vectors of texts with the Trainer of sentence-transformers.

    python sentence_transformers_training.py SETTINGS.json

SETTINGS.json has `folder` of the weights, `loss`, `max_seq_length`,
`batch_size`, `learning_rate`, `epochs`, `seed`, and the tables `train_file` and
`eval_file`, of `texts` and `scores`. With `keep_layers`, the model keeps these
layers, and learns the embeddings of all of them instead of `loss`. A tenth of
the steps are warm-up. Prints one JSON line. Runs in an environment of its own,
with datasets and accelerate.
"""

import json
import resource
import sys
import tempfile

import sentence_transformers
import torch
import transformers
from datasets import Dataset
from sentence_transformers import SentenceTransformer, losses
from sentence_transformers.evaluation import EmbeddingSimilarityEvaluator

_LOSSES = {
    "cosent": losses.CoSENTLoss,
    "ranking": losses.MultipleNegativesRankingLoss,
}


def keep_layers(model: SentenceTransformer, layers: list[int]) -> None:
    """Removes the other layers of a BERT."""
    bert = model[0].auto_model
    kept = [bert.encoder.layer[i] for i in layers]
    bert.encoder.layer = torch.nn.ModuleList(kept)
    bert.config.num_hidden_layers = len(layers)


def main(path: str) -> None:
    """Prints one JSON line."""
    with open(path, encoding="utf-8") as file:
        settings = json.load(file)
    transformers.set_seed(settings["seed"])
    model = SentenceTransformer(settings["folder"], device="cpu")
    model.max_seq_length = settings["max_seq_length"]

    train, held_out = settings["train_file"], settings["eval_file"]
    first, second = zip(*train["texts"])
    columns = {"first": first, "second": second}
    if train["scores"]:
        columns["score"] = train["scores"]
    size, loss = settings["batch_size"], _LOSSES.get(settings["loss"])
    if layers := settings["keep_layers"]:  # each text alone
        texts = [*first, *second]
        columns = {"text": texts, "label": model.encode(texts)}
        keep_layers(model, layers)
        size, loss = 2 * size, losses.MSELoss

    with tempfile.TemporaryDirectory() as scratch:
        trainer = sentence_transformers.SentenceTransformerTrainer(
            model=model,
            args=sentence_transformers.SentenceTransformerTrainingArguments(
                output_dir=scratch,
                per_device_train_batch_size=size,
                num_train_epochs=settings["epochs"],
                learning_rate=settings["learning_rate"],
                warmup_steps=0.1,
                weight_decay=0.01,
                seed=settings["seed"],
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                use_cpu=True,
                disable_tqdm=True,
            ),
            train_dataset=Dataset.from_dict(columns),
            loss=loss(model),
        )
        trained = trainer.train()

    first, second = zip(*held_out["texts"])
    scores = EmbeddingSimilarityEvaluator(
        [*first], [*second], held_out["scores"], batch_size=32
    )(model)
    print(
        json.dumps(
            {
                "seconds": trained.metrics["train_runtime"],
                "step_seconds": trained.metrics["train_runtime"]
                / trainer.state.global_step,
                "peak_mb": round(
                    resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                ),
                **scores,
                "sentence_transformers": sentence_transformers.__version__,
                "torch": torch.__version__,
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
