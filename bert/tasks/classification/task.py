"""The task of run_classifier.py: labels or numbers of texts."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from bert.common.progress import say
from bert.data import features, label_kinds
from bert.data.label_kinds import CLASSES, MULTI_LABEL, REGRESSION, Decision
from bert.data.records.examples import Examples
from bert.data.text import vocabulary
from bert.modeling import task_losses, task_models
from bert.modeling.formats import checkpoint_files, conversion
from bert.modeling.formats.model_folder import ModelFolder
from bert.modeling.openvino_network import Network
from bert.serving import export_folder, graphs, openvino_export, openvino_model
from bert.tasks import eval_report, finetuning, run_folder, training_data
from bert.tasks.classification import (
    answers,
    examples,
    export,
    metrics,
    reference,
    tuning,
)
from bert.tasks.classification.inputs import DEV, TEST, TRAIN, Data, Part
from bert.tasks.classification.score_settings import LOSS
from bert.tasks.classification.settings import Settings
from bert.tasks.classification.tasks import MAE
from bert.tasks.run_folder import RunFolder
from bert.training.run import Run
from bert.training.task import Task

_BATCH_SUMS = {
    CLASSES: task_losses.class_sums,
    MULTI_LABEL: task_losses.multi_label_sums,
}
_SHORT = 100  # characters of the example of an export


def make_task(
    settings: Settings,
    model: ModelFolder,
    folder: RunFolder,
    data: Data,
    on_logits: Callable[[Part, np.ndarray], None] = lambda *_: None,
) -> Task:
    """Encodes the examples, and says what is computed with them.

    Args:
        settings: the settings of the script.
        model: config and tokenizer.
        folder: the folder of the run, or of several runs.
        data: the input files.
        on_logits: called with each evaluated file, and its logits.

    Raises:
        UserError: there are too few examples for one step, or the folder
            holds a run with other training data.
    """
    shared, labels = settings.finetuning, data.labels
    is_number = labels.kind == REGRESSION
    eval_size = shared.training.eval_batch_size

    # Before the network is built: a mistake in the data is told at once.
    encoded, records = None, ""
    for part in data.of(TRAIN):
        records = training_data.identify(folder.shared, part.path, part.rows)
        rows = encode(part, settings, data, model)
        encoded = Examples(rows, examples.schema(labels))

    @functools.cache  # a validation reads them again
    def held_out(part: Part) -> list[dict]:
        return [*encode(part, settings, data, model)]

    @functools.cache  # the same for all seeds
    def simple_scores() -> dict[str, float]:
        if not (settings.reference and data.of(TRAIN)):
            return {}
        train, part = data.of(TRAIN)[0], data.of(DEV)[0]
        found = reference.answers(train, part, labels.kind, model.tokenizer)
        if found is None:
            return {}
        scores = metrics.scores(data.metrics, part.labels, found)
        return {
            f"eval_{name}/{eval_report.TFIDF}": value
            for name, value in scores.items()
        }

    # Folder of a seed -> what was fitted to its logits.
    fitted: dict[str, Decision] = {}

    def decided(run: Run) -> Data:
        decision = fitted.get(run.folder, labels.decision)
        return dataclasses.replace(
            data, labels=dataclasses.replace(labels, decision=decision)
        )

    def validate(run: Run) -> dict[str, float]:
        part = data.of(DEV)[0]
        logits = _logits(run, eval_size, part, held_out(part))
        found = label_kinds.answers(logits, labels.kind)
        return score(settings, data, part, logits, found)

    def evaluate(run: Run) -> tuple[dict[str, float], dict]:
        result, more = {}, {}

        # The main file is the last one, which the report is about.
        for part in reversed(data.of(DEV)):
            logits = _logits(run, eval_size, part, held_out(part))
            on_logits(part, logits)
            decision = decided(run).labels.decision
            found = label_kinds.answers(logits, labels.kind, decision)
            if settings.scoring.tunes and not part.name:
                tuned = tuning.tune(
                    settings.scoring, labels, data.class_weights, part, logits
                )
                found, more = tuned.answers, tuned.report
                fitted[run.folder] = tuned.decision
            result |= score(settings, data, part, logits, found)
        if more or settings.scoring.unknown_below is not None:
            _write_decision(run, folder, decided(run), shared.max_seq_length)
        report = answers.report(part, decided(run).labels, logits, found) | more
        report["references"] |= simple_scores()
        if data.class_weights:
            report["class_weights"] = data.weights_by_name()
        return result, report | {"task": settings.task, "records": part.path}

    def predict(run: Run) -> list[str]:
        wrote = []
        for part in data.of(TEST):
            rows = encode(part, settings, data, model)
            logits = _logits(run, shared.predict_batch_size, part, rows)
            wrote += _write_predictions(
                settings, folder, decided(run), part, logits
            )
        return wrote

    def save(run: Run, path: str) -> dict[str, float]:
        weights, final = run.weights(), decided(run)
        _save(path, weights, settings, model, final)
        if not settings.export_openvino:
            return {}
        network = _save_openvino(path, weights, settings, model, final)
        if not (shared.do_eval and data.of(DEV)):
            return {}

        # Another precision may answer differently, so it is scored too.
        part = data.of(DEV)[0]
        rows = held_out(part)
        logits = _logits(run, eval_size, part, rows)
        return _score_openvino(network, settings, final, part, rows, logits)

    best = settings.scoring.best_metric or data.metrics[0]
    return Task(
        settings.task,
        lambda: task_models.build_classifier(
            model.config, labels.size, shared.training.random_seed
        ),
        (task_losses.LABELS,),
        task_losses.label_weights,
        _batch_sums(settings, data),
        finetuning.schedule(shared, len(encoded or ())),
        measures=("loss",) if is_number else ("loss", "accuracy"),
        records=training_data.describe(encoded, records),
        metric=f"eval_{best}",
        is_loss=best in (LOSS, MAE),
        examples=encoded,
        labels=data.describe() | data.describe_training(),
        validate=validate,
        evaluate=evaluate,
        predict=predict,
        export=save,
    )


def _write_decision(
    run: Run, folder: RunFolder, data: Data, max_seq_length: int
) -> None:
    """Adds what was fitted to the `task.json` beside the weights."""
    if not (folder.is_chief and run_folder.has_checkpoint(run.folder)):
        return
    task = checkpoint_files.recorded_task(run.folder)
    if task is None:  # of an earlier version
        task = run.task.labels | {"max_seq_length": max_seq_length}
    task.pop("decision", None)
    decision = data.labels.decision.described()
    checkpoint_files.write_task(run.folder, task | decision)


def _batch_sums(settings: Settings, data: Data) -> Callable:
    """The loss of the labels, with the weights and the smoothing of the run."""
    kind, smoothing = data.labels.kind, settings.scoring.label_smoothing
    if kind == REGRESSION:
        return task_losses.number_sums
    return functools.partial(
        _BATCH_SUMS[kind], weights=data.class_weights, smoothing=smoothing
    )


def encode(
    part: Part, settings: Settings, data: Data, model: ModelFolder
) -> Iterator[dict]:
    """Yields the features of a file; warns of texts that are cut.

    Args:
        part: the file.
        settings: the settings of the script.
        data: the labels of the task.
        model: its tokenizer.
    """
    tokenizer, limit = model.tokenizer, settings.finetuning.max_seq_length
    lengths: list[int] = []  # in tokens, before they are cut
    yield from examples.encode(
        part.examples,
        tokenizer.fast.ids_of_lines,
        (tokenizer.vocab[vocabulary.CLS], tokenizer.vocab[vocabulary.SEP]),
        limit,
        data.labels,
        lengths.append,
        data.truncate,
    )

    # Log; all lengths are known only at the end.
    count = sum(tokens > limit for tokens in lengths)
    if count:
        say(
            f"warning: {part.path}: texts longer than {limit} tokens, which "
            f"were cut: {count:,} of {len(lengths):,} (the longest: "
            f"{max(lengths):,}); see --max_seq_length"
        )


def _ranking(data: Data, part: Part, logits: np.ndarray) -> dict[str, float]:
    """Scores of second texts by their first text, of labels 0 and 1."""
    labels, gold, ranks = data.labels, part.labels, logits[:, 0]
    if labels.kind == CLASSES and sorted(labels.names) == ["0", "1"]:
        one = labels.names.index("1")
        gold, ranks = gold == one, logits[:, one] - logits[:, 1 - one]
    elif labels.kind != REGRESSION or not np.isin(gold, (0, 1)).all():
        return {}
    if not data.has_pairs:
        return {}
    queries = [example.text for example in part.examples]
    return metrics.ranking(queries, gold.astype(float), ranks)


def score(
    settings: Settings,
    data: Data,
    part: Part,
    logits: np.ndarray,
    found: np.ndarray,
) -> dict[str, float]:
    """Metrics and losses of a file with labels.

    Args:
        settings: the settings of the script.
        data: labels and metrics of the task.
        part: the file, with N examples.
        logits: float32 [N, C].
        found: the answers.
    """
    kind, gold = data.labels.kind, part.labels
    each = metrics.losses(logits, gold, kind)
    result = metrics.scores(data.metrics, gold, found)
    result["loss"] = float(each.mean())
    result |= _ranking(data, part, logits)

    # A second file, such as mismatched, has keys of its own.
    prefix = f"eval_{part.name}{'_' if part.name else ''}"
    result = {f"{prefix}{name}": value for name, value in result.items()}
    if not part.name:  # as in Estimator: the mean over the batches
        size = settings.finetuning.training.eval_batch_size
        starts = range(0, len(each), size)
        means = [float(each[i : i + size].mean()) for i in starts]
        result["loss"] = sum(means) / len(means)
    return result


def _logits(
    run: Run, batch_size: int, part: Part, rows: Iterable[dict]
) -> np.ndarray:
    """float32 [N, C], of the examples of a file."""
    what = "predicted" if part.split == TEST else "evaluated"
    outputs = run.outputs(rows, batch_size, what, len(part.examples))
    return np.stack([output["logits"] for output in outputs])


def _save(
    path: str,
    weights: dict[str, np.ndarray],
    settings: Settings,
    model: ModelFolder,
    data: Data,
) -> None:
    """Writes the SavedModel, and an example of its texts."""
    classifier = export.Classifier(
        model, settings, data.labels, data.has_pairs, weights, data.truncate
    )
    graphs.save(classifier, path, "tokens", "examples")

    # A text of the data, to try the export with.
    for part in (data.of(DEV) or data.of(TRAIN))[:1]:
        row = min(part.examples, key=lambda x: abs(len(x.text) - _SHORT))
        texts = {"text": row.text, "text_b": row.text_b}
        export_folder.write_extra(path, export_folder.EXAMPLE, texts)


def _write_predictions(
    settings: Settings,
    folder: RunFolder,
    data: Data,
    part: Part,
    logits: np.ndarray,
) -> list[str]:
    """Writes the predictions for a file; returns the paths."""
    labels, rows, has_pairs = data.labels, part.examples, data.has_pairs
    results, predictions, doubtful = (
        folder.file(part.file(stem, ".tsv"))
        for stem in ("test_results", "predictions", "doubtful_labels")
    )
    answers.write_test_results(results, logits, labels)
    answers.write_predictions(predictions, rows, logits, labels, has_pairs)
    wrote = [results, predictions]

    # Labels of a test file are scored, but nothing is chosen by them.
    if part.is_labelled:
        if labels.kind == CLASSES:
            answers.write_doubtful_labels(
                doubtful, rows, logits, labels, has_pairs
            )
            wrote.append(doubtful)
        predicted = label_kinds.answers(logits, labels.kind, labels.decision)
        scores = metrics.scores(data.metrics, part.labels, predicted)
        shown = " | ".join(f"{name} {x:.4f}" for name, x in scores.items())
        say(f"{part.path} | {shown}")

    # All tasks and workers share this folder, so one process writes.
    if folder.is_chief and settings.glue_dir and part.submission:
        ids = [example.id for example in rows]
        wrote.append(
            answers.write_submission(
                settings.glue_dir, part.submission, ids, logits, labels
            )
        )
    return wrote


def _save_openvino(
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
            data.truncate,
        )
    return openvino_export.write(path, bert, settings.export_openvino, rows)


def _score_openvino(
    network: Network,
    settings: Settings,
    data: Data,
    part: Part,
    rows: list[dict],
    logits: np.ndarray,
) -> dict[str, float]:
    """Scores the network of an export beside the logits of the run."""
    pairs = [(x[features.INPUT_IDS], x[features.SEGMENT_IDS]) for x in rows]
    limit = settings.finetuning.max_seq_length
    others = openvino_model.text_logits(network, pairs, limit, data.labels.size)

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
