"""The task of run_ner.py: a label for each word."""

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from scipy import special

from bert.common.progress import say
from bert.data import features
from bert.data.records.examples import Examples
from bert.data.text.tokenizer import Tokenizer
from bert.modeling import task_losses, task_models
from bert.modeling.formats.model_folder import ModelFolder
from bert.serving import graphs
from bert.tasks import class_report, finetuning, training_data
from bert.tasks.ner import conll, entities, export, windows
from bert.tasks.ner import metrics as scoring
from bert.tasks.ner.entities import ENTITIES
from bert.tasks.ner.settings import Settings
from bert.tasks.run_folder import RunFolder
from bert.training.run import Run
from bert.training.task import Task

Answer = tuple[str, float, float]  # label, loss of the true label, probability


def make_task(
    settings: Settings,
    model: ModelFolder,
    folder: RunFolder,
    sentences: dict[str, list[conll.Sentence]],
    kind: str,
    labels: list[str],
) -> Task:
    """Encodes the sentences, and says what is computed with them.

    Args:
        settings: settings of the script.
        model: config and tokenizer.
        folder: the folder of the run.
        sentences: flag of a file -> its sentences.
        kind, labels: from `labels.find`.

    Raises:
        UserError: there are too few examples for one step, or the folder
            holds a run with other training data.
    """
    shared, is_entities = settings.finetuning, kind == ENTITIES
    featurizer = featurizer_of(model.tokenizer, labels, settings)

    # A mistake in the data ends the run before the network is built.
    encoded, records = None, ""
    if "train_file" in sentences:
        records = training_data.identify(folder.shared, settings.train_file)
        encoded = Examples(
            featurizer.featurize(sentences["train_file"]),
            windows.TRAINING_SCHEMA,
        )

    def evaluate(run: Run) -> tuple[dict[str, float], dict]:
        file = sentences["eval_file"]
        gold = [sentence.labels for sentence in file]
        _warn_unknown(gold, labels)
        rows = [*featurizer.featurize(file)]
        size = shared.training.eval_batch_size
        outputs = run.outputs(rows, size, "evaluated", len(rows))
        answers = [*read_answers(rows, outputs, labels)]

        # Windows answer word by word; entities are found in sentences.
        guesses = by_sentence(file, (x[0] for x in answers), is_entities)
        result = score(gold, guesses, answers, is_entities)
        metrics = {f"eval_{name}": value for name, value in result.items()}
        described = report(file, guesses, answers, labels)
        return metrics, described | {"records": settings.eval_file}

    def predict(run: Run) -> list[str]:
        if not shared.do_predict:
            return []
        file = sentences["predict_file"]
        rows = [*featurizer.featurize(file)]
        size = shared.predict_batch_size
        outputs = run.outputs(rows, size, "predicted", len(rows))
        answers = read_answers(rows, outputs, labels)

        guesses = by_sentence(file, (x[0] for x in answers), is_entities)
        path = folder.file("predictions.conll")
        conll.write_predictions(
            settings.predict_file,
            path,
            file,
            guesses,
        )
        return [path]

    def save(run: Run, path: str) -> None:
        labeller = export.Labeller(
            model, settings, labels, is_entities, run.weights()
        )
        graphs.save(labeller, path, "words")

    return Task(
        "ner",
        lambda: task_models.build_token_classifier(
            model.config, len(labels), shared.training.random_seed
        ),
        (task_losses.TOKEN,),
        task_losses.token_weights,
        task_losses.token_sums,
        finetuning.schedule(shared, len(encoded or ())),
        records=training_data.describe(encoded, records),
        metric="eval_f1" if is_entities else "eval_accuracy",
        examples=encoded,
        labels={
            "kind": kind,
            "labels": labels,
            "doc_stride": settings.doc_stride,
            "document_context": settings.document_context,
        },
        validate=lambda run: evaluate(run)[0],
        evaluate=evaluate,
        predict=predict,
        export=save,
    )


def report(
    sentences: list[conll.Sentence],
    guesses: list[list[str]],
    answers: list[Answer],
    labels: list[str],
) -> dict:
    """Reports on labelled words, for `eval_report.write`.

    Args:
        sentences: the sentences, with their labels.
        guesses: the predicted labels of each.
        answers: of each word.
        labels: the labels of the task.
    """
    words = [
        (sentence, *word)
        for sentence, predicted in zip(sentences, guesses)
        for word in zip(
            sentence.lines, sentence.words, sentence.labels, predicted
        )
    ]

    # Labels that training has not seen are always wrong, but count.
    names = list(labels)
    names += sorted({label for *_, label, _ in words} - set(names))
    number = {name: i for i, name in enumerate(names)}
    gold = [number[label] for *_, label, _ in words]
    predicted = [number[guess] for *_, guess in words]
    class_report.log_one_answer([guess for *_, guess in words])

    errors = (
        {
            "line": line,
            "text": [" ".join(sentence.words), word],
            "label": label,
            "predicted": guess,
            "probability": probability,
        }
        for (sentence, line, word, label, guess), (*_, probability) in zip(
            words, answers
        )
        if label != guess
    )
    return {
        "task": "ner",
        "references": class_report.references_of_classes(
            gold, len(names), "eval_accuracy", "eval_loss"
        ),
        **class_report.of_classes(gold, predicted, names),
        "worst_errors": class_report.worst(errors),
    }


def featurizer_of(
    tokenizer: Tokenizer, labels: Sequence[str], settings: Settings
) -> windows.Featurizer:
    """Makes what splits sentences into windows."""
    exact = tokenizer.exact
    return windows.Featurizer(
        lambda word: exact.convert_tokens_to_ids(exact.tokenize(word)),
        exact.vocab,
        {label: i for i, label in enumerate(labels)},
        settings.finetuning.max_seq_length,
        settings.doc_stride,
        settings.document_context,
    )


def score(
    gold: list[list[str]],
    guesses: list[list[str]],
    answers: list[Answer],
    is_entities: bool,
) -> dict[str, float]:
    """Scores labelled words, and their mean loss.

    Args:
        gold: the labels of each sentence.
        guesses: the predicted ones.
        answers: of each word.
        is_entities: whether labels mark entities.
    """
    scores = scoring.score_entities if is_entities else scoring.score_labels
    loss = sum(x[1] for x in answers) / max(1, len(answers))
    return {**scores(gold, guesses), "loss": loss}


def read_answers(
    rows: list[dict], outputs: Iterable[dict], labels: Sequence[str]
) -> Iterator[Answer]:
    """Yields the prediction for each word.

    Args:
        rows: the features of all windows.
        outputs: logits of each, [S, C].
        labels: the labels of the task.
    """
    for row, output in zip(rows, outputs):
        # A word is answered in one of its windows only, at its first token.
        positions = np.flatnonzero(row[features.LABEL_WEIGHTS])
        logits = output["logits"][positions].astype(np.float64)
        logs = special.log_softmax(logits, -1)
        gold = np.array(row[features.LABEL_IDS])[positions]
        losses = -np.take_along_axis(logs, gold[:, None], -1)[:, 0]
        best = np.exp(logs.max(-1))
        for i, loss, probability in zip(logits.argmax(-1), losses, best):
            yield labels[i], float(loss), float(probability)


def by_sentence(
    sentences: list[conll.Sentence], labels: Iterable[str], is_entities: bool
) -> list[list[str]]:
    """Groups labels by sentence; entity labels become valid BIO."""
    labels = iter(labels)
    groups = [[*itertools.islice(labels, len(x.words))] for x in sentences]
    if is_entities:
        return [entities.to_bio(group) for group in groups]
    return groups


def _warn_unknown(gold: list[list[str]], labels: list[str]) -> None:
    unknown = {y for x in gold for y in x} - set(labels)
    if unknown:
        say(
            "warning: labels that are not in the training data count as "
            f"errors: {', '.join(sorted(unknown))[:80]}"
        )
