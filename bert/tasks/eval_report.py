"""`eval_report.json`: metrics with their baselines, classes, worst errors.

A baseline is the score of a model that has not read the texts, has not learned
from them, or is much simpler. It is fitted to the training examples; in a run
that does not train, to the evaluated ones. The file calls it a reference, and
names it `metric/kind`:

    majority      always predict the most frequent label
    chance        predict all labels with equal probability
    frequencies   predict each label with its frequency
    unigrams      the same for the tokens of the masked LM
    word_overlap  fraction of words that two texts share
    before        the weights before training
    tfidf         linear model of the words
    frozen        linear model of the outputs of the encoder before training
    cosine        cosine of the embeddings of two texts before training
"""

import os

from bert.common import atomic
from bert.common.formats import json_files
from bert.common.progress import log
from bert.modeling.formats.model_card import REPORT
from bert.tasks.evaluation import (
    CHANCE,
    COSINE,
    FREQUENCIES,
    FROZEN,
    TFIDF,
    UNIGRAMS,
)
from bert.tasks.metrics import sign

SIMPLER = (TFIDF, FROZEN, COSINE)  # models that read the texts
_CLEAR = 0.1  # of the distance between a baseline and a perfect score


def describe(name: str, value: float, baselines: dict[str, float]) -> str:
    """Formats a metric and its baselines: `0.656250 (majority 0.656250)`."""
    beside = ", ".join(
        f"{kind} {reference:.6f}"
        for kind, reference in _of(name, baselines).items()
    )
    return f"{value:.6f}{f' ({beside})' if beside else ''}"


def warning(
    metrics: dict[str, float],
    baselines: dict[str, float],
    has_cause: bool = False,
) -> str:
    """Names metrics that a baseline reaches, and one remedy; or "".

    Args:
        metrics: dict. Metric -> value.
        baselines: dict. "metric/kind" -> value.
        has_cause: bool. Whether a warning about the predictions has named the
            remedy already. Default: False.
    """
    worse, kinds, better = [], {}, []
    for name, value in metrics.items():
        beside = _of(name, baselines)
        # A linear model that is just as good is not better.
        beaten = {
            kind: x
            for kind, x in beside.items()
            if sign(name) * x > sign(name) * value
            or (kind not in SIMPLER and not sign(name) * value > sign(name) * x)
        }

        if beaten:
            kind = max(beaten, key=lambda key: sign(name) * beaten[key])
            worse.append(f"{name} {value:.6f} ({kind} {beside[kind]:.6f})")
            # Worse than a constant: it has learned too little.
            constant = [x for x in beaten if x not in SIMPLER]
            kinds[name] = constant[0] if constant and kind == TFIDF else kind
        elif beside and _is_clear(name, value, beside):
            better.append(name)
    if not worse:
        return ""
    found = f"not better than a baseline: {', '.join(worse)}"
    return found if has_cause else f"{found}; {_remedy(kinds, better)}"


def _remedy(kinds: dict[str, str], better: list[str]) -> str:
    """Names a remedy for one cause.

    Args:
        kinds: dict. Metric that is not better -> kind of a better baseline.
        better: list of str. Metrics that are clearly better than all baselines.
    """
    others = [x for name, x in kinds.items() if not name.endswith("loss")]
    of_classes = {CHANCE, FREQUENCIES, UNIGRAMS, FROZEN}.issuperset
    if better and not others and of_classes(kinds.values()):
        return (
            "its predictions are better, but overconfident: train for fewer "
            "epochs or lower --learning_rate"
        )
    if COSINE in others:
        return (
            "embeddings of the texts were better before training: see "
            "run_similarity.py, or lower --learning_rate"
        )
    if FROZEN in others:
        return (
            "the encoder was better before its fine-tuning: lower "
            "--learning_rate"
        )
    if others and {*others} <= {*SIMPLER}:
        return (
            "a linear model of the words is better: train from another "
            "--init_checkpoint"
        )
    return "check --learning_rate, the number of steps and the data"


def _is_clear(name: str, value: float, beside: dict[str, float]) -> bool:
    """Whether a metric is clearly better than all of its baselines."""
    perfect = 0.0 if sign(name) < 0 else 1.0
    gap = min(abs(perfect - baseline) for baseline in beside.values())
    return gap - abs(perfect - value) > _CLEAR * gap


def _of(name: str, baselines: dict[str, float]) -> dict[str, float]:
    """Baselines of a metric: kind -> value."""
    prefix = f"{name}/"
    return {
        key.removeprefix(prefix): value
        for key, value in baselines.items()
        if key.startswith(prefix)
    }


def write(
    folder: str, step: int, metrics: dict[str, float], report: dict
) -> str:
    """Writes the report, and warns if the model is not better than baselines.

    Args:
        folder: str. Output folder of the run.
        step: int. Training step of the evaluated weights.
        metrics: dict. Metric -> value.
        report: dict. All other values of the file. `task` is the name of the
            task, `records` the evaluated file.

    Returns:
        Path of the file.
    """
    # The file keeps this order: a summary first, then long lists.
    summary = {"task": report["task"], "step": step}
    summary |= {"records": report["records"], "metrics": metrics}
    whole = summary | report
    has_cause = bool(report.get("warnings"))
    if worse := warning(metrics, report.get("references", {}), has_cause):
        log(f"warning: {worse}")
        whole["warning"] = worse
    path = os.path.join(folder, REPORT)
    text = json_files.to_json(whole, indent=1, ensure_ascii=False)
    atomic.write_whole(path, text + "\n")
    return path
