"""SQuAD metrics, as in the official scripts of versions 1.1 and 2.0."""

import collections
import re
import string

from bert.tasks.squad import examples as squad

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation))

Scores = dict[str, float]  # id of a question -> score from 0 to 1


def normalize_answer(text: str) -> str:
    """Lowercases; removes ASCII punctuation, articles and extra spaces."""
    text = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def exact_score(gold: str, predicted: str) -> int:
    """1 if both texts are equal after normalization, else 0."""
    return int(normalize_answer(gold) == normalize_answer(predicted))


def f1_score(gold: str, predicted: str, both_empty: float = 1.0) -> float:
    """The harmonic mean of precision and recall of words.

    Args:
        gold: the text of a label.
        predicted: the predicted text.
        both_empty: float. The score of two texts without words: 1 in version
            2.0, 0 in version 1.1.
    """
    gold_words = normalize_answer(gold).split()
    words = normalize_answer(predicted).split()
    if not gold_words and not words:
        return both_empty
    common = collections.Counter(gold_words) & collections.Counter(words)
    same = common.total()
    if not same:
        return 0.0
    precision, recall = same / len(words), same / len(gold_words)
    return 2 * precision * recall / (precision + recall)


def scores_1(
    examples: list[squad.SquadExample], predictions: dict[str, str]
) -> dict[str, float]:
    """Computes the metrics of version 1.1, in percent.

    Args:
        examples: questions read with `examples.TEXTS`.
        predictions: dict, id -> answer; missing answers count as wrong.

    Returns:
        exact_match, f1.
    """
    exact = f1 = 0.0
    for example in examples:
        predicted = predictions.get(example.id)
        golds = [answer.text for answer in example.answers]
        if predicted is None or not golds:
            continue
        exact += max(exact_score(gold, predicted) for gold in golds)
        f1 += max(f1_score(gold, predicted, 0.0) for gold in golds)
    count = len(examples)
    return {"exact_match": 100.0 * exact / count, "f1": 100.0 * f1 / count}


def raw_scores(
    examples: list[squad.SquadExample], predictions: dict[str, str]
) -> tuple[Scores, Scores]:
    """Computes the version 2.0 scores of each question.

    Labels without words are ignored. Without labels, the right answer is "".

    Args:
        examples: questions read with `examples.TEXTS`.
        predictions: dict, id -> answer, for every question.

    Returns:
        exact match and F1, each id -> score.
    """
    exact: Scores = {}
    f1: Scores = {}
    for example in examples:
        golds = [answer.text for answer in example.answers]
        golds = [gold for gold in golds if normalize_answer(gold)] or [""]
        predicted = predictions[example.id]
        exact[example.id] = max(exact_score(x, predicted) for x in golds)
        f1[example.id] = max(f1_score(x, predicted) for x in golds)
    return exact, f1


def scores_2(
    examples: list[squad.SquadExample],
    predictions: dict[str, str],
    odds: dict[str, float],
    threshold: float,
) -> dict[str, float]:
    """Computes the metrics of version 2.0, in percent.

    Args:
        examples: questions read with `examples.TEXTS`.
        predictions: dict, id -> answer or "", for every question.
        odds: dict, id -> odds of no answer, on any scale.
        threshold: float. If the odds are greater, the answer counts as "".

    Returns:
        exact, f1 and total over all questions. With the prefix `HasAns_` the
        same for answerable questions, with `NoAns_` for unanswerable ones.
        best_exact and best_f1 with their thresholds. The average precisions
        pr_exact_ap, pr_f1_ap and pr_oracle_ap.
    """
    has_answer = {x.id: bool(x.answers) for x in examples}
    raw = dict(zip(("exact", "f1"), raw_scores(examples, predictions)))

    # "" is right for unanswerable questions.
    scores = {
        name: {
            key: float(not has_answer[key]) if odds[key] > threshold else value
            for key, value in of.items()
        }
        for name, of in raw.items()
    }
    result = _means(scores, list(has_answer))
    for prefix, kind in (("HasAns", True), ("NoAns", False)):
        chosen = [key for key, value in has_answer.items() if value == kind]
        if chosen:
            means = _means(scores, chosen)
            result |= {f"{prefix}_{name}": x for name, x in means.items()}

    # Scores at the best threshold, to compare with the given one.
    for name in scores:
        best, at = best_threshold(predictions, raw[name], odds, has_answer)
        result |= {f"best_{name}": best, f"best_{name}_thresh": at}

    # Recall needs an answerable question.
    if any(has_answer.values()):
        oracle = {key: float(value) for key, value in has_answer.items()}
        for name, of in {**raw, "oracle": oracle}.items():
            result[f"pr_{name}_ap"] = average_precision(of, odds, has_answer)
    return result


def best_threshold(
    predictions: dict[str, str],
    scores: Scores,
    odds: dict[str, float],
    has_answer: dict[str, bool],
) -> tuple[float, float]:
    """Finds the best score of any threshold, as in the official script.

    Questions are answered one by one, in the order of their odds. Questions
    with equal odds may be separated, although no threshold can do that.

    Args:
        predictions: dict, id -> answer or "".
        scores: dict, id -> score.
        odds: dict, id -> odds of no answer.
        has_answer: dict, id -> whether the question has an answer.

    Returns:
        the score in percent, and the odds of the last answered question; 0.0
        if leaving all questions unanswered is best.
    """
    # At first no question is answered: the unanswerable ones are right.
    score = best = sum(not value for value in has_answer.values())
    at = 0.0
    for key in sorted(odds, key=odds.__getitem__):
        if has_answer[key]:
            score += scores[key]
        elif predictions[key]:
            score -= 1
        if score > best:
            best, at = score, odds[key]
    return 100.0 * best / len(scores), at


def average_precision(
    scores: Scores, odds: dict[str, float], has_answer: dict[str, bool]
) -> float:
    """Computes the area under the precision-recall curve, in percent.

    An answered question adds its score to the true positives. Recall is over
    all answerable questions.

    Args:
        scores: dict, id -> score.
        odds: dict, id -> odds of no answer. Questions are answered in this
            order; equal odds are one point of the curve.
        has_answer: dict, id -> whether the question has an answer; at least
            one is true.
    """
    order = sorted(odds, key=odds.__getitem__)
    total = sum(has_answer.values())
    hits = area = last = 0.0
    for count, key in enumerate(order, 1):
        hits += scores[key] if has_answer[key] else 0.0

        # Add a point after the last of equal odds.
        if count == len(order) or odds[key] != odds[order[count]]:
            area += hits / count * (hits / total - last)
            last = hits / total
    return 100.0 * area


def tune_threshold(
    examples: list[squad.SquadExample],
    answers: dict[str, str],
    odds: dict[str, float],
) -> float:
    """Finds the threshold with the highest F1.

    Unlike `best_threshold`, it does not separate equal odds. The threshold is
    halfway between two odds, so that rounding cannot change an answer.

    Args:
        examples: questions read with `examples.TEXTS`.
        answers: dict, id -> the best non-empty answer, or "" without one.
        odds: dict, id -> odds of no answer.
    """
    _, answered = raw_scores(examples, answers)
    _, silent = raw_scores(examples, dict.fromkeys(answers, ""))

    # Odds -> gain in F1 by answering the questions with these odds.
    gains: dict[float, float] = collections.defaultdict(float)
    for example in examples:
        if answers[example.id]:
            gain = answered[example.id] - silent[example.id]
            gains[odds[example.id]] += gain
    order = sorted(gains)
    if not order:
        return 0.0

    # Raise the threshold step by step.
    score = best = 0.0
    found = order[0] - 1.0  # below all odds: answers none of them
    for value, above in zip(order, [*order[1:], order[-1] + 2.0]):
        score += gains[value]
        if score > best:
            best, found = score, (value + above) / 2
    return found


def _means(scores: dict[str, Scores], chosen: list[str]) -> dict[str, float]:
    """exact, f1 and total of the chosen questions, in percent."""
    total = len(chosen)
    means = {
        name: 100.0 * sum(of[key] for key in chosen) / total
        for name, of in scores.items()
    }
    return {**means, "total": total}
