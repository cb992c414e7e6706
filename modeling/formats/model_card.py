"""The page of a model on the Hugging Face Hub, and names of GLUE's labels."""

import json
import os

from common import storage
from common.errors import UserError
from modeling.config import BertConfig

FILE = "README.md"
_ENTAILMENT = ["entailment", "not_entailment"]
# GLUE's task -> names of the labels, in the order of their numbers.
GLUE_LABELS = {
    "cola": ["unacceptable", "acceptable"],
    "mrpc": ["not_equivalent", "equivalent"],
    "qnli": _ENTAILMENT,
    "qqp": ["not_duplicate", "duplicate"],
    "rte": _ENTAILMENT,
    "sst2": ["negative", "positive"],
    "wnli": ["not_entailment", "entailment"],
}
_PIPELINES = {  # architecture -> kind of task on the Hub
    "BertForSequenceClassification": "text-classification",
    "BertForTokenClassification": "token-classification",
    "BertForQuestionAnswering": "question-answering",
    "BertForMultipleChoice": "multiple-choice",
    "BertForPreTraining": "fill-mask",
    "BertForMaskedLM": "fill-mask",
    "BertForNextSentencePrediction": "text-classification",
    "BertModel": "feature-extraction",
}
_WORDS = ("task_name", "optimizer", "precision", "records")  # no paths


def glue_task(name: str, size: int, path: str) -> dict:
    """Kind and names of the labels of a task of GLUE, as in `task.json`.

    Args:
        name: a key of `GLUE_LABELS`.
        size: labels of the classifier; 0 without one.
        path: the model, for the message.

    Raises:
        UserError: the task has another number of labels.
    """
    labels = GLUE_LABELS[name]
    if size != len(labels):
        raise UserError(
            f"--task_name={name}, but the classifier has {size} labels",
            path=path,
            expected=str(len(labels)),
        )
    return {"kind": "classes", "labels": labels}


def page(
    config: BertConfig,
    architecture: str,
    labels: list[str],
    do_lower_case: bool | None,
    strip_accents: bool | None,
    prefix: str,
) -> str:
    """Formats the page.

    Args:
        config: sizes.
        architecture: class of transformers.
        labels: names of the labels, or none.
        do_lower_case: casing of the tokenizer, or None if unknown.
        strip_accents: whether it strips accents; None: as do_lower_case.
        prefix: the checkpoint; its JSON holds settings and records of the
            training, `eval_results.txt` beside it the results of its step.
    """
    folder = os.path.dirname(prefix)
    strips = do_lower_case if strip_accents is None else strip_accents
    casing = {None: "unknown", True: "uncased", False: "cased"}[do_lower_case]
    sizes = {
        "layers": config.num_hidden_layers,
        "hidden size": config.hidden_size,
        "attention heads": config.num_attention_heads,
        "tokens": config.vocab_size,
        "positions": config.max_position_embeddings,
        "casing": casing,
        "accents": {None: "unknown", True: "stripped", False: "kept"}[strips],
    }
    training = _training(f"{prefix}.json")
    results = _results(os.path.join(folder, "eval_results.txt"))
    if results.get("global_step") != str(training.get("step")):
        results = {}  # of another checkpoint
    if labels:
        sizes["labels"] = ", ".join(labels)
    parts = [
        "---\nlibrary_name: transformers\n"
        f"pipeline_tag: {_PIPELINES[architecture]}\ntags:\n- bert\n---\n",
        f"# {architecture}\n",
        "A BERT in the architecture of the original release.\n",
        _table("Model", sizes),
        _table("Training", training),
        _table("Results", results),
    ]
    return "\n".join(part for part in parts if part)


def _table(title: str, values: dict) -> str:
    rows = "".join(
        f"| {name} | {str(value).replace('|', '&#124;')} |\n"
        for name, value in values.items()
    )
    return f"## {title}\n\n| | |\n|---|---|\n{rows}" if rows else ""


def _training(path: str) -> dict:
    """Facts of a run, from the JSON of its checkpoint, without paths."""
    try:
        with storage.open_text(path) as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    settings = found.get("settings") or {}
    values = {"step": found.get("step"), **settings}
    facts = {
        name: value
        for name, value in values.items()
        if isinstance(value, bool | int | float)
        or (name in _WORDS and value is not None)
    }
    return facts | (settings.get("environment") or {})


def _results(path: str) -> dict:
    """Lines of `eval_results.txt`: `name = value`."""
    try:
        with storage.open_text(path) as file:
            lines = [line.partition(" = ") for line in file]
    except (OSError, ValueError):
        return {}
    return {name.strip(): value.strip() for name, mid, value in lines if mid}
