"""SQuAD's metrics, as in the official scripts of version 1.1 and 2.0."""

import collections
import re
import string

from bert.tasks.squad import examples as squad

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = dict.fromkeys(map(ord, string.punctuation))

Scores = dict[str, float]  # id of a question -> score from 0 to 1


def normalize_answer(text: str) -> str:
    """Lower-cases; drops ASCII punctuation, articles and extra spaces."""
    text = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", text).split())


def exact_score(gold: str, predicted: str) -> int:
    """1 if both are equal after normalisation, else 0."""
    return int(normalize_answer(gold) == normalize_answer(predicted))


def f1_score(gold: str, predicted: str, both_empty: float = 1.0) -> float:
    """The harmonic mean of precision and recall of words.

    Args:
        gold: the text of a label.
        predicted: the predicted text.
        both_empty: the score of two texts without words: 1 in version 2.0,
            0 in version 1.1.
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
        predictions: id -> answer; a missing one counts as wrong.

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
    """Computes the scores of version 2.0 of each question.

    Labels without words are ignored; a question without labels has the answer
    "".

    Args:
        examples: questions read with `examples.TEXTS`.
        predictions: id -> answer, for every question.

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
        predictions: id -> answer, for every question; "" is no answer.
        odds: id -> odds of no answer, on any scale.
        threshold: if the odds are greater, the answer counts as "".

    Returns:
        exact, f1, total; the same with `HasAns_` and `NoAns_`, for questions
        with and without an answer; best_exact, best_f1 and their thresholds;
        average precisions pr_exact_ap, pr_f1_ap, pr_oracle_ap.
    """
    has_answer = {x.id: bool(x.answers) for x in examples}
    raw = dict(zip(("exact", "f1"), raw_scores(examples, predictions)))

    # A withheld answer is right where the question has none.
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

    # What the best threshold would reach, to judge the given one.
    for name in scores:
        best, at = best_threshold(predictions, raw[name], odds, has_answer)
        result |= {f"best_{name}": best, f"best_{name}_thresh": at}

    # Recall is over questions with an answer: it needs one.
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

    Questions are answered one by one, in the order of their odds. So questions
    with equal odds may be separated, which no threshold can do.

    Args:
        predictions: id -> answer; "" is no answer.
        scores: id -> score.
        odds: id -> odds of no answer.
        has_answer: id -> whether the question has an answer.

    Returns:
        the score in percent, and the odds of the last answered question, or
        0.0 if it is best to answer none.
    """
    # With no question answered, those without an answer are right.
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

    An answered question adds its score to the true positives; recall is over
    all questions that have an answer.

    Args:
        scores: id -> score.
        odds: id -> odds of no answer; questions are answered in this order,
            those with equal odds together.
        has_answer: id -> whether the question has an answer; at least one has.
    """
    order = sorted(odds, key=odds.__getitem__)
    total = sum(has_answer.values())
    hits = area = last = 0.0
    for count, key in enumerate(order, 1):
        hits += scores[key] if has_answer[key] else 0.0

        # Equal odds are answered together, as one point of the curve.
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
    halfway between the odds on both sides, so that rounding changes no answer.

    Args:
        examples: questions read with `examples.TEXTS`.
        answers: id -> the best non-empty answer, or "" if there is none.
        odds: id -> odds of no answer.
    """
    _, answered = raw_scores(examples, answers)
    _, silent = raw_scores(examples, dict.fromkeys(answers, ""))

    # What answering adds to the score, for each value of the odds.
    gains: dict[float, float] = collections.defaultdict(float)
    for example in examples:
        if answers[example.id]:
            gain = answered[example.id] - silent[example.id]
            gains[odds[example.id]] += gain
    order = sorted(gains)
    if not order:
        return 0.0

    # From answering none to answering all.
    score = best = 0.0
    found = order[0] - 1.0  # answers nothing
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
