"""A network in OpenVINO, as a model that answers.

texts -> ids -> network -> label, probabilities, label names; or a vector

Its folder has the files of a checkpoint, with openvino_model.xml and .bin
for the weights. No TensorFlow is imported.
"""

import itertools
import sys
from collections.abc import Callable

import numpy as np

from bert.common.errors import UserError
from bert.common.progress import say
from bert.data import label_kinds, length_batches, pooling
from bert.data.features import INPUT_MASK
from bert.data.label_kinds import (
    CLASSES,
    MULTI_LABEL,
    REGRESSION,
    Decision,
    Labels,
)
from bert.data.sequences import LongTexts
from bert.modeling.formats.checkpoint_files import TASK
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.formats.sentence_files import TextVectors
from bert.modeling.openvino_network import Network
from bert.serving import asking
from bert.serving.predict_settings import Settings

SIGNATURE = "serving_default"
_TEXT, _TEXT_B = "text", "text_b"


def load(settings: Settings) -> asking.ServedModel:
    """Loads a model.

    Args:
        settings: checked.

    Raises:
        UserError: it is damaged, or gives no answers.
    """
    folder = settings.model
    if settings.signature != SIGNATURE:
        raise UserError(
            f"no signature {settings.signature!r}",
            path=folder,
            expected=SIGNATURE,
        )

    network, model = Network(folder), ModelFolder.open(folder)
    model.check()
    say(network.description)
    if model.task and model.task["kind"] in (CLASSES, MULTI_LABEL, REGRESSION):
        return _classifier(network, model, settings)
    if model.vectors:
        return _embedder(network, model, settings)
    raise UserError(
        "the network gives neither labels nor one vector of a text",
        path=folder,
        expected="labels, or one number, in task.json; or a pooling",
        fix="see extract_features.py for the vectors of an encoder",
    )


def _classifier(
    network: Network, model: ModelFolder, settings: Settings
) -> asking.ServedModel:
    task, tokenizer = model.task, model.tokenizer
    limit = task.get("max_seq_length", model.max_length)
    labels = Labels(
        task["kind"], tuple(task["labels"]), decision=Decision.of_task(task)
    )

    network.check("logits", labels.size, f"one for each label in {TASK}")
    long_texts = LongTexts.of_task(task)

    def columns(strings) -> tuple[list[str], list[str]]:
        texts = strings[_TEXT]
        return texts, strings.get(_TEXT_B, [""] * len(texts))

    def answer(strings):
        windows = tokenizer.windows(*columns(strings), limit, long_texts)
        rows = [*itertools.chain.from_iterable(windows)]
        logits = text_logits(network, rows, limit, labels.size)
        counts = [*map(len, windows)]
        return _answer(long_texts.pooled(logits, counts), labels)

    names = [_TEXT, _TEXT_B] if task.get("pairs") else [_TEXT]
    inputs = asking.in_order(settings, names)
    if long_texts.pool:  # no text is truncated
        return asking.ServedModel(answer, inputs)
    count = _counter(lambda x: tokenizer.rows(*columns(x), sys.maxsize), limit)
    return asking.ServedModel(answer, inputs, count_tokens=count)


def _embedder(
    network: Network, model: ModelFolder, settings: Settings
) -> asking.ServedModel:
    how, tokenizer, limit = model.vectors, model.tokenizer, model.max_length
    how.check()
    network.check("sequence_output", model.config.hidden_size, "an encoder")
    prompt = how.prompt(None)

    def rows_of(strings, max_length):
        texts = [prompt + text for text in strings[_TEXT]]
        return tokenizer.rows(texts, [""] * len(texts), max_length)

    def answer(strings):
        rows = rows_of(strings, limit)
        return {"vector": text_vectors(network, rows, limit, how)}

    inputs = asking.in_order(settings, [_TEXT])
    count = _counter(lambda x: rows_of(x, sys.maxsize), limit)
    return asking.ServedModel(answer, inputs, count_tokens=count)


def text_logits(
    network: Network,
    rows: list[tuple[list[int], list[int]]],
    limit: int,
    size: int,
) -> np.ndarray:
    """Computes the logits of texts.

    Args:
        network: of a classifier.
        rows: ids and segment ids of each text.
        limit: the longest, in tokens.
        size: C, the number of logits of a text.

    Returns:
        float32 [N, C].
    """
    logits = np.zeros((len(rows), size), np.float32)
    for group, batch in length_batches.groups(rows, limit):
        logits[group] = network(batch)["logits"]
    return logits


def text_vectors(
    network: Network,
    rows: list[tuple[list[int], list[int]]],
    limit: int,
    how: TextVectors,
) -> np.ndarray:
    """Computes the vectors of texts.

    Args:
        network: of an encoder.
        rows: ids and segment ids of each text, at least one.
        limit: the longest, in tokens.
        how: pooling, and whether each gets length 1.

    Returns:
        float32 [N, H].
    """
    parts, order = [], []
    for group, batch in length_batches.groups(rows, limit):
        x, mask = network(batch)["sequence_output"], batch[INPUT_MASK]
        parts.append(pooling.pool(x, mask, how.pooling))
        order += group

    vectors = np.concatenate(parts)[np.argsort(order)]
    if how.normalize:
        vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors


def _counter(rows_of: Callable, limit: int) -> Callable:
    """Counts the tokens of texts, with a function to their whole rows."""

    def count_tokens(strings):
        return limit, np.array([len(ids) for ids, _ in rows_of(strings)])

    return count_tokens


def _answer(logits: np.ndarray, labels: Labels) -> dict:
    """The outputs of a SavedModel of these labels, with str for bytes."""
    kind, decision = labels.kind, labels.decision
    if kind == REGRESSION:
        return {"value": logits[:, 0]}

    names = np.array(labels.names, object)
    answers = label_kinds.answers(logits, kind, decision)
    if kind == CLASSES:
        label = names[answers]
        label[label_kinds.unknown(logits, decision)] = ""
    else:  # padded with "" at the end
        label = np.full(logits.shape, "", object)
        for row, chosen in zip(label, answers.astype(bool)):
            row[: chosen.sum()] = names[chosen]
    return {
        "label": label,
        "probabilities": label_kinds.probabilities(logits, kind, decision),
        "label_names": np.broadcast_to(names, logits.shape),
    }
