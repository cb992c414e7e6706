"""The folder of a run, as `reports` reads it, written by hand."""

import json
import pathlib

EVIL = "<script>alert('x')</script> & \"quoted\" \x1b[1m\x9b\u202etxet"
LABELS = ["cat", "dog & <b>", "bird"]


def write_run(folder: pathlib.Path, **settings) -> pathlib.Path:
    """A run of pre-training with all files that a report shows."""
    folder.mkdir(parents=True)
    points = [
        {
            "step": step,
            "kind": "train",
            "loss": 9.7 - step / 50,
            "masked_lm_loss": 9.0 - step / 50,
            "masked_lm_accuracy": step / 1000,
            "next_sentence_loss": 0.7,
            "next_sentence_accuracy": 0.53,
            "gradient_norm": None if step == 20 else 1.5,
            "learning_rate": 1e-3 / step,
            "examples_per_second": 0.0 if step == 10 else 211.0,
            "tokens_per_second": 0.0 if step == 10 else 3011.0,
        }
        for step in (10, 20, 30)
    ]
    losses = ("loss", "masked_lm_loss", "masked_lm_accuracy")
    points.insert(0, {**points[-1], "loss": 7.0})  # of a killed run
    held_out = {"step": 30, "kind": "eval"}
    points.append({**held_out, **{x: points[-1][x] + 0.25 for x in losses}})
    lines = [json.dumps(point) + "\n" for point in points]
    (folder / "metrics.jsonl").write_text("".join(lines))
    settings = {
        "num_train_steps": 30,
        "note": EVIL,
        "environment": {"tensorflow": "2.21.0", "device": "CPU"},
        **settings,
    }
    described = {"step": 30, "settings": settings}
    (folder / "model.ckpt-30.json").write_text(json.dumps(described))
    (folder / "model.ckpt-7.json").write_text('{"settings": {"old": 1}}')
    (folder / "bert_config.json").write_text('{"vocab_size": 8009}')
    (folder / "eval_results.txt").write_text(
        "global_step = 30\nloss = 9.35\nmasked_lm_accuracy = 0.28\n"
    )
    (folder / "command.txt").write_text("run.py --x='<i>'\n")
    return folder


def write_classifier(folder: pathlib.Path, **settings) -> pathlib.Path:
    """A run of fine-tuning, with an evaluation of three labels."""
    folder.mkdir(parents=True)
    points = [
        {
            "step": step,
            "kind": "train",
            "loss": 1.1 - step / 100,
            "labels_loss": 1.1 - step / 100,
            "labels_accuracy": step / 40,
            "learning_rate": 1e-5,
        }
        for step in (10, 20, 30)
    ]
    points.append(
        {"step": 30, "kind": "eval", "eval_accuracy": 0.71, "eval_loss": 0.83}
    )
    lines = [json.dumps(point) + "\n" for point in points]
    (folder / "metrics.jsonl").write_text("".join(lines))
    described = {"settings": {"num_train_epochs": 2.0, **settings}}
    (folder / "model.ckpt-30.json").write_text(json.dumps(described))
    (folder / "eval_results.txt").write_text(
        "eval_accuracy = 0.71\neval_loss = 0.83\n"
    )
    scores = {"precision": 0.5, "recall": 0.25, "f1": 0.3333333, "support": 11}
    report = {
        "task": "classification",
        "step": 20,
        "records": "dev & <b>.tsv",
        "metrics": {"eval_accuracy": 0.71},
        "references": {"eval_accuracy/majority": 0.4211},
        "warning": "no better than <b>: eval_loss",
        "labels": LABELS,
        "confusion_matrix": [[11, 2, 0], [3, 13, 1], [0, 0, 17]],
        "per_class": dict.fromkeys(LABELS, scores),
        "worst_errors": [
            {"text": EVIL, "label": "cat", "predicted": LABELS[1]},
            {
                "id": "n7",
                "line": 5,
                "text": ["one", "two"],
                "label": "cat",
                "probability": 0.987,
            },
        ],
    }
    (folder / "eval_report.json").write_text(json.dumps(report))
    return folder
