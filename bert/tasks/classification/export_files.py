"""The folder of an export: a SavedModel, and a network of OpenVINO."""

import itertools

import numpy as np

from bert.common.progress import say
from bert.data import features, label_kinds
from bert.data.label_kinds import REGRESSION
from bert.modeling.formats import conversion
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.openvino_network import Network
from bert.serving import export_folder, graphs, openvino_export, openvino_model
from bert.tasks.classification import export, metrics
from bert.tasks.classification.inputs import DEV, TRAIN, Data, Part
from bert.tasks.classification.settings import Settings

_SHORT = 100  # characters of the example of an export


def save(
    path: str,
    weights: dict[str, np.ndarray],
    settings: Settings,
    model: ModelFolder,
    data: Data,
) -> None:
    """Writes the SavedModel, and an example of its texts."""
    classifier = export.Classifier(
        model, settings, data.labels, data.has_pairs, weights, data.long_texts
    )
    graphs.save(classifier, path, "tokens", "examples")

    # A text of the data, to try the export with.
    for part in (data.of(DEV) or data.of(TRAIN))[:1]:
        row = min(part.examples, key=lambda x: abs(len(x.text) - _SHORT))
        texts = {"text": row.text, "text_b": row.text_b}
        export_folder.write_extra(path, export_folder.EXAMPLE, texts)


def save_openvino(
    path: str,
    weights: dict[str, np.ndarray],
    settings: Settings,
    model: ModelFolder,
    data: Data,
) -> Network:
    """Writes the network for OpenVINO, calibrated with texts of the data."""
    limit = settings.finetuning.max_seq_length
    bert = conversion.Bert(
        path,
        model.config,
        weights,
        [],
        model.tokenizer.with_max_length(limit),
        data.describe()
        | data.describe_training()
        | {"max_seq_length": limit}
        | data.labels.decision.described(),
    )

    rows = []
    if settings.export_openvino == "int8":
        part = (data.of(TRAIN) or data.of(DEV))[0]
        texts = openvino_export.sample(part.examples)
        rows = model.tokenizer.rows(
            [x.text for x in texts],
            [x.text_b for x in texts],
            limit,
            data.long_texts.truncate,
        )
    return openvino_export.write(path, bert, settings.export_openvino, rows)


def score_openvino(
    network: Network,
    settings: Settings,
    data: Data,
    part: Part,
    texts: list[list[dict]],
    logits: np.ndarray,
) -> dict[str, float]:
    """Scores the network of an export beside the logits of the run."""
    rows = [
        (x[features.INPUT_IDS], x[features.SEGMENT_IDS])
        for x in itertools.chain.from_iterable(texts)
    ]
    limit = settings.finetuning.max_seq_length
    others = openvino_model.text_logits(network, rows, limit, data.labels.size)
    others = data.long_texts.pooled(others, [*map(len, texts)])

    # The same metrics, and how many of the answers have changed.
    kind, decision = data.labels.kind, data.labels.decision
    predicted = label_kinds.answers(others, kind, decision)
    result = metrics.scores(data.metrics, part.labels, predicted)
    if kind != REGRESSION:
        before = label_kinds.answers(logits, kind, decision)
        result["changed_labels"] = int((predicted != before).sum())
    shown = " | ".join(f"{name} {x:.4g}" for name, x in result.items())
    say(f"OpenVINO, {settings.export_openvino} | {part.path} | {shown}")
    return {f"openvino_{name}": value for name, value in result.items()}
