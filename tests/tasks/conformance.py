"""Checks of what every task promises, with a small network of random weights.

encode     sequences fit; an example has the same ones alone and in a batch
records    the same sequences, with all targets of the schema
decode     finite JSON values of the same keys; both engines agree
score      rows that are labelled as predicted have the best score
to_json    `from_model` reads it, and predicts the same
"""

import dataclasses
import json
import math
import pathlib
import types
from collections.abc import Callable

import numpy as np

from bert.data.pooling import PoolingConfig
from bert.data.sequences import Encoded
from bert.data.text import vocabulary
from bert.data.text.tokenizer import Tokenizer
from bert.inference.predictor import Predictor, load_keras, sequences_of
from bert.modeling import encoder, networks
from bert.modeling.engines.openvino_engine import OpenVINOEngine
from bert.modeling.formats import conversion, model_card, openvino
from bert.modeling.formats.model import Model
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.task_heads import HEADS, MASKED_LM
from bert.tasks.task import Task
from tests.helpers import model_files, small

LONG = "the cat sees a dog near the old house " * 9
_FIELDS = (
    *("head", "num_outputs", "max_length", "inputs", "optional_inputs"),
    *("signatures", "can_rank", "reads_windows", "pooling_config"),
)
EMBEDDING = "sentence-similarity"
_SETTINGS = types.SimpleNamespace(tfidf_baseline=False)


def model_of(
    folder: pathlib.Path,
    head: str | None,
    num_outputs: int = 1,
    pooling_config: PoolingConfig | None = None,
) -> ModelFolder:
    """A model with random weights.

    Args:
        folder: to write its config and vocabulary to.
        head, num_outputs: its head.
        pooling_config: of an embedding model.
    """
    config = model_files.write_sizes(folder)
    if head:
        network = networks.build(config, head, num_outputs)
    else:
        network = encoder.build_encoder(config)
    values = model_files.random_values(network, 0.5)
    for name, x in values.items():
        if name.endswith(("beta", "bias")):
            x *= 0.1  # else the predictions hardly depend on the text
    tokenizer = Tokenizer(str(folder / "vocab.txt"), do_lower_case=True)
    tokenizer = tokenizer.with_max_length(small.POSITIONS)
    return Model("", config, values, tokenizer, pooling_config=pooling_config)


def check(
    folder: pathlib.Path,
    task: Task,
    model: ModelFolder,
    odd: list[dict],
    rows: list = (),
    relabel: Callable[[list, list[dict]], list] | None = None,
    best: float = 1.0,
) -> None:
    """Checks a task.

    Args:
        folder: for files.
        task: the task, with the model's tokenizer.
        model: a model with the task's head.
        odd: examples, such as empty and very long ones.
        rows: labelled rows of a file; none for a task that is not trained.
        relabel: function of rows and their predictions. Returns rows whose
            labels are the predictions.
        best: the best value of the task's metric.
    """
    known = task.inputs_of(rows) if rows else []
    examples = [*known, *odd]
    encoded = task.encode(examples)
    _check_sequences(task, model, examples, encoded)

    engine = load_keras(model, task.head)
    predictor = Predictor(task, engine)
    results = [result for _, result in predictor.compute(encoded)]
    predictions = task.decode(encoded, results)
    json.dumps(predictions, allow_nan=False)
    assert len(predictions) == len(examples)
    assert {(*x,) for x in predictions} == {(*predictions[0],)}
    if task.head != MASKED_LM:
        _check_openvino(folder, predictor, model, encoded)
    _check_huggingface(folder, task, model)
    again = _again(task, model)
    assert Predictor(again, engine)(examples) == predictions
    if rows:
        known = encoded[: len(known)]
        _check_records(task, rows, known)
        _check_scores(task, rows, known, results[: len(known)])
        labelled = relabel(rows, predictions[: len(known)])
        scored = task.score(labelled, known, results[: len(known)])
        assert math.isclose(scored.metrics[task.metric], best, abs_tol=1e-5)
        assert not scored.report.get("worst_errors")


def _rows_of(encoded: Encoded) -> list[tuple[tuple, tuple]]:
    """The sequences of an example, as values that compare."""
    return [
        (tuple(map(int, a)), tuple(map(int, b))) for a, b in encoded.sequences
    ]


def _check_sequences(
    task: Task, model: ModelFolder, examples: list, encoded: list[Encoded]
) -> None:
    """Checks the sequences of examples."""
    vocab = model.tokenizer.vocab
    assert len(encoded) == len(examples)
    for example, found in zip(examples, encoded):
        (alone,) = task.encode([example])
        assert _rows_of(alone) == _rows_of(found)
        for ids, segments in _rows_of(found):
            assert 2 <= len(ids) == len(segments) <= task.max_length, ids
            assert ids[0] == vocab[vocabulary.CLS], ids
            assert ids[-1] == vocab[vocabulary.SEP], ids
            assert [*segments] == sorted(segments) and {*segments} <= {0, 1}
        if found.num_tokens and not task.reads_windows:
            is_long = found.num_tokens > task.max_length
            assert found.is_truncated == is_long
            if not is_long and found.sequences:
                longest = max(len(ids) for ids, _ in found.sequences)
                assert found.num_tokens == longest


def _check_openvino(
    folder: pathlib.Path,
    predictor: Predictor,
    model: ModelFolder,
    encoded: list[Encoded],
) -> None:
    """Compares the outputs of both engines."""
    network = folder / "network"
    network.mkdir()
    openvino.write(str(network), model.config, model.values)
    other = Predictor(predictor.task, OpenVINOEngine(str(network), 1))
    sequences = sequences_of(encoded)
    found = other.compute_sequences(sequences)
    expected = predictor.compute_sequences(sequences)
    for one, two in zip(found, expected, strict=True):
        scale = max(1.0, np.abs(two).max())
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-5 * scale)


def _check_huggingface(
    folder: pathlib.Path, task: Task, model: ModelFolder
) -> None:
    """Compares weights and task.json after a conversion and back."""
    target = folder / "huggingface"
    target.mkdir()
    described = None
    if not task.pooling_config and task.head != MASKED_LM:
        described = task.to_json()
    model = dataclasses.replace(model, task_json=described)
    conversion.write(model, "huggingface", str(target))
    again = ModelFolder.open(str(target)).read()
    assert {**again.values}.keys() == {**model.values}.keys()
    for name, x in model.values.items():
        np.testing.assert_array_equal(again.values[name], x)
    if described:
        assert {**again.task_json} == described | {
            "max_seq_length": again.task_json["max_seq_length"]
        }
    names = model_card.task_of(model.values, task.head is None)
    assert names == (HEADS[task.head].pipeline_tag if task.head else EMBEDDING)


def _again(task: Task, model: ModelFolder) -> Task:
    """The task as read from its JSON, or from the files of the model."""
    described = None
    if not task.pooling_config and task.head != MASKED_LM:
        described = json.loads(json.dumps(task.to_json(), allow_nan=False))
    again = type(task).from_model(
        dataclasses.replace(model, task_json=described)
    )
    for name in _FIELDS:
        missing = None if name == "num_outputs" else ...
        assert getattr(again, name, missing) == getattr(task, name, missing)
    assert described is None or again.to_json() == described
    return again


def _check_records(task: Task, rows: list, encoded: list[Encoded]) -> None:
    """Checks the training records of rows."""
    told, sequences = [], set()
    records = [*task.records(rows, told.append)]
    assert len(told) == len(encoded) == task.num_examples(rows)
    for record in records:
        ids, segments = record["input_ids"], record["segment_ids"]
        if task.sequences == 1:
            ids, segments = [ids], [segments]
        assert len(ids) == task.sequences
        sequences |= {*_rows_of(Encoded([*zip(ids, segments)]))}
        assert record.keys() == {"input_ids", "segment_ids", *task.schema}
        for name, feature in task.schema.items():
            values = np.asarray(record[name])
            size = len(ids[0]) if feature.sequence else feature.size
            assert values.shape == (size,), name
            assert feature.dtype == "float32" or values.dtype.kind == "i", name
    if not task.reads_windows:  # training truncates
        expected = {x for one in encoded for x in _rows_of(one)}
        assert expected <= sequences
        assert all(len(ids) == 2 for ids, _ in sequences - expected)  # padding


def _check_scores(
    task: Task, rows: list, encoded: list[Encoded], results: list
) -> None:
    """Checks the metrics of rows, and their baselines."""
    writes_folds = type(task).write_out_of_fold is not Task.write_out_of_fold
    assert task.joins_folds == writes_folds
    scored = task.score(rows, encoded, results)
    assert task.metric in scored.metrics
    assert all(map(math.isfinite, scored.metrics.values())), scored.metrics
    json.dumps([scored.report, scored.warnings], allow_nan=False)
    baselines = task.baselines(rows, encoded, rows, _SETTINGS)
    assert {name.split("/")[0] for name in baselines} <= {*scored.metrics}
    assert all(map(math.isfinite, baselines.values())), baselines
