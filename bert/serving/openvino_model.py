"""A classifier's network in OpenVINO, as a model that answers.

texts -> ids -> network -> label, probabilities, label names

Its folder has the files of a checkpoint, with openvino_model.xml and .bin
for the weights. No TensorFlow is imported.
"""

import sys

import numpy as np

from bert.common.errors import UserError
from bert.common.progress import say
from bert.data import label_kinds, length_batches
from bert.data.label_kinds import (
    CLASSES,
    MULTI_LABEL,
    REGRESSION,
    Decision,
    Labels,
)
from bert.data.sequences import HEAD
from bert.modeling.formats.model_folder import ModelFolder
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
        UserError: it is damaged, or it is not a classifier's.
    """
    folder = settings.model
    if settings.signature != SIGNATURE:
        raise UserError(
            f"no signature {settings.signature!r}",
            path=folder,
            expected=SIGNATURE,
        )

    network, model = Network(folder), ModelFolder.open(folder)
    task = model.task
    if not task or task["kind"] not in (CLASSES, MULTI_LABEL, REGRESSION):
        raise UserError(
            "the network is not a classifier's",
            path=folder,
            expected="labels, or one number, in task.json",
            fix="see extract_features.py for vectors",
        )

    limit = task.get("max_seq_length", model.max_length)
    model.check()
    tokenizer = model.tokenizer
    labels = Labels(
        task["kind"], tuple(task["labels"]), decision=Decision.of_task(task)
    )
    names = [_TEXT, _TEXT_B] if task.get("pairs") else [_TEXT]
    say(network.description)

    def rows_of(strings, max_length):
        texts = strings[_TEXT]
        pairs = strings.get(_TEXT_B, [""] * len(texts))
        truncate = task.get("truncate", HEAD)
        return tokenizer.rows(texts, pairs, max_length, truncate)

    def call(strings):
        rows = rows_of(strings, limit)
        logits = np.zeros((len(rows), labels.size), np.float32)
        for group, batch in length_batches.groups(rows, limit):
            logits[group] = network(batch)["logits"]
        return _answer(logits, labels)

    def count_tokens(strings):
        rows = rows_of(strings, sys.maxsize)
        return limit, np.array([len(ids) for ids, _ in rows])

    inputs = asking.in_order(settings, names)
    return asking.ServedModel(call, inputs, count_tokens=count_tokens)


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
