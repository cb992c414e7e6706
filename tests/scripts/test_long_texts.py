"""Long texts in windows: run_classifier and what serves its answers."""

import json

import keras
import numpy as np
import pytest

import run_classifier
from bert.common import tensor_files
from bert.data import label_kinds
from bert.data.label_kinds import CLASSES, MULTI_LABEL, REGRESSION, Decision
from bert.data.text import tokenization
from bert.inference.predictor import Predictor
from bert.modeling import checkpoints, task_models
from bert.models.text_classifier import TextClassifier
from bert.training import prediction
from tests.helpers import http_server, model_files, small, text
from tests.helpers.classifier_files import rows_of

SIZE, STRIDE = small.POSITIONS - 2, 7  # of a window, in tokens
RNG = np.random.default_rng(7)
LENGTHS = (0, SIZE, SIZE + 1, 10_000, *RNG.integers(1, 60, 13))
TEXTS = [" ".join(RNG.choice(text.WORDS, n)) for n in LENGTHS]
SHORT = [x for x in TEXTS if x.count(" ") < SIZE]
KINDS = ("--multi_label", "--regression")
ANSWER = ("--do_eval", "--do_predict")
CALIBRATED = "--tune_thresholds --calibrate"


@pytest.fixture
def answer(run_script, tmp_path):
    """Evaluates and predicts with the run, or trains it."""

    def run(*words, **named):
        words = words if "--do_train" in words else (*ANSWER, *words)
        names = ("train_file", "eval_file", "predict_file")
        code, _, err = run_script(
            run_classifier,
            *words,
            **dict.fromkeys(names, tmp_path / "dev.jsonl"),
            task_name="jsonl",
            text_column="t",
            label_column="l",
            output_dir=tmp_path / "run",
            **named,
        )
        assert code == 0, err
        return err

    return run


@pytest.fixture
def write_run(answer, tmp_path):
    """Writes tables, and a run with random weights; returns its network."""

    def write(kind, labels, *words):
        config = model_files.write_sizes(tmp_path)
        network = task_models.build_classifier(config, len(labels) or 1)
        values = model_files.random_values(network, 0.5)
        named = checkpoints.model_variables(network)
        checkpoints.assign(named, values, "random", tuple(named))
        tensor_files.write(str(tmp_path / "model.ckpt-3"), values)

        of_kind = {
            CLASSES: lambda x: labels[x % len(labels)],
            MULTI_LABEL: lambda x: labels[x % 4 :],
            REGRESSION: lambda x: x + 0.5,
        }
        rows = [{"t": t, "l": of_kind[kind](i)} for i, t in enumerate(TEXTS)]
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        (tmp_path / "dev.jsonl").write_text(lines)

        # One step that changes nothing.
        answer(
            "--do_train",
            "--noreference",
            *words,
            init_checkpoint=tmp_path / "model.ckpt-3",
            max_seq_length=SIZE + 2,
            train_batch_size=len(TEXTS),
            num_train_epochs=1,
            learning_rate=1e-9,
        )
        return network

    return write


def plain_logits(folder, network, pool):
    """Logits of each text: of its windows one after the other, pooled."""
    tokenizer = tokenization.FullTokenizer(f"{folder}/vocab.txt")
    logits = []
    for one in TEXTS:
        tokens, start, rows = tokenizer.tokenize(one), 0, []
        while not rows or start + SIZE - STRIDE < len(tokens):
            row = ["[CLS]", *tokens[start : start + SIZE], "[SEP]"]
            rows.append(tokenizer.convert_tokens_to_ids(row))
            start += STRIDE

        inputs = np.zeros((3, len(rows), SIZE + 2), np.int32)
        for number, row in enumerate(rows):
            inputs[0, number, : len(row)] = row
            inputs[1, number, : len(row)] = 1
        names = ("input_ids", "input_mask", "segment_ids")
        found = network(dict(zip(names, inputs)))["logits"]
        logits.append(getattr(np, pool)(np.array(found), axis=0))
    return np.stack(logits)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "labels", "pool", "words"),
    [
        (CLASSES, ["no", "yes"], "mean", CALIBRATED),
        pytest.param(
            *(MULTI_LABEL, ["a", "b", "c"], "max"),
            f"--multi_label {CALIBRATED}",
            marks=pytest.mark.long,
        ),
        pytest.param(
            *(CLASSES, ["a", "b", "c"], "max", "--unknown_below={}"),
            marks=pytest.mark.long,
        ),
        pytest.param(
            *(REGRESSION, [], "mean", "--regression"), marks=pytest.mark.long
        ),
    ],
)
def test_windows_are_answered_alike_everywhere(
    write_run, answer, ask, tmp_path, kind, labels, pool, words
):
    of_labels = [x for x in words.split() if x in KINDS]
    network, run = write_run(kind, labels, *of_labels), tmp_path / "run"
    logits = plain_logits(tmp_path, network, pool)
    likely = label_kinds.probabilities(logits, kind).max(-1).mean()
    export = tmp_path / "export"
    windows = {"pool_windows": pool, "doc_stride": STRIDE}
    err = answer(
        *words.format(likely).split(),
        long_texts="windows",
        export_dir=export,
        export_openvino="float32",
        **windows,
    )
    longer = len(TEXTS) - len(SHORT)
    assert f"{longer} of {len(TEXTS)} texts are longer than" in err

    # Later commands read the windows from task.json.
    task = json.loads((run / "task.json").read_text())
    assert task["windows"] == {"pool": pool, "stride": STRIDE}
    decision = Decision.of_task(task)
    chances = label_kinds.probabilities(logits, kind, decision)
    given = np.loadtxt(run / "test_results.tsv", ndmin=2)
    np.testing.assert_allclose(given, chances.reshape(given.shape), atol=1e-4)
    answer(*of_labels)
    again = np.loadtxt(run / "test_results.tsv", ndmin=2)
    np.testing.assert_array_equal(again, given)

    predicted = [row[1] for row in rows_of(run / "predictions.tsv")[1:]]
    if kind == CLASSES:
        assert ("" in predicted) == ("unknown" in words)

    # The entry points that read the run or an export of it.
    lines = "".join(f"{x}\n" for x in TEXTS).encode()
    examples = [{"text": x} for x in TEXTS]
    model = TextClassifier(str(run))
    path = str(tmp_path / "model.keras")
    model.save(path)
    answers = [
        classifier.predict(TEXTS, verbose=0)
        for classifier in (model, keras.saving.load_model(path))
    ]
    answers.append(model.predict_on_batch(TEXTS))
    name = "value" if kind == REGRESSION else "probabilities"
    answers = [x[name] for x in answers]
    for folder, engine in ((run, "keras"), (export, "keras"), (export, None)):
        served = http_server.queue_of(Predictor.open(str(folder), engine))
        _, found, err = ask(folder, lines, batch_size=len(TEXTS))
        assert "truncated" not in err
        for rows in (served(examples), found):
            values = [x[name] for x in rows]
            if kind != REGRESSION:
                values = [[*x.values()] for x in values]
                names = [x["label"] or "" for x in rows]
                names = [
                    x if isinstance(x, str) else ",".join(x) for x in names
                ]
                assert names == predicted
            answers.append(np.array(values))
    for found in answers:
        np.testing.assert_allclose(found.reshape(given.shape), given, atol=1e-4)


@pytest.mark.slow
def test_texts_that_fit_are_in_the_same_batches_with_the_same_answers(
    write_run, answer, tmp_path, monkeypatch
):
    write_run(CLASSES, ["no", "yes"])
    path = tmp_path / "dev.jsonl"
    rows = path.read_text().splitlines(keepends=True)
    path.write_text("".join(x for x in rows if json.loads(x)["t"] in SHORT))
    call, seen = prediction.Predictor.__call__, []
    monkeypatch.setattr(
        prediction.Predictor,
        "__call__",
        lambda self, batch: seen[-1].append(batch) or call(self, batch),
    )

    results = []
    for how in ("truncate", "windows"):
        seen.append([])
        answer(long_texts=how)
        results.append((tmp_path / "run" / "test_results.tsv").read_bytes())
    assert results[0] == results[1]
    before, now = seen
    for one, other in zip(before, now, strict=True):
        for name in one:
            np.testing.assert_array_equal(one[name], other[name])
    task = json.loads((tmp_path / "run" / "task.json").read_text())
    assert task["windows"] == {"pool": "mean", "stride": SIZE * 3 // 4}
    answer(long_texts="truncate")
    assert "windows" not in (tmp_path / "run" / "task.json").read_text()
