"""The task of run_ner.py: token classification."""

from bert.common import storage
from bert.common.progress import log
from bert.data.records.examples import Examples
from bert.data.sequences import Row, rows_of
from bert.modeling import task_losses, task_models
from bert.tasks import class_report, finetuning
from bert.tasks.ner import conll, windows
from bert.tasks.ner import metrics as scoring
from bert.tasks.ner.entities import ENTITIES
from bert.tasks.ner.pipeline import Answer, TokenClassification
from bert.tasks.run_folder import RunFolder
from bert.training.task import Task
from bert.training.trainer import Trainer


def make_task(
    folder: RunFolder,
    sentences: dict[str, list[conll.Sentence]],
    kind: str,
    labels: list[str],
) -> Task:
    """Encodes the sentences, and makes the task for training.

    Args:
        folder: the folder of the run, with settings and initial model.
        sentences: flag of a file -> its sentences.
        kind, labels: kind and names of the labels, see `labels.find`.

    Raises:
        UserError: there are too few examples for one step, or the folder
            holds a run with other training data.
    """
    settings, model = folder.settings, folder.model
    is_entities = kind == ENTITIES
    tagger = TokenClassification(
        model.tokenizer,
        labels,
        is_entities,
        settings.max_seq_length,
        settings.doc_stride,
        settings.document_context,
    )

    def answer(
        trainer: Trainer, name: str, batch_size: int, description: str
    ) -> tuple[list[list[str]], list[Answer]]:
        """The labels of each sentence, and the prediction for each word."""
        rows = tagger.windows_of(sentences[name])
        outputs = trainer.predict(rows, batch_size, description, len(rows))
        logits = (output["logits"] for output in outputs)
        answers = [*tagger.read_answers(rows, logits)]
        found = (label for label, *_ in answers)
        return tagger.by_sentence(sentences[name], found), answers

    # Errors in the data are reported before the network is built.
    encoded, records = None, ""
    if "train_file" in sentences:
        records = folder.identify(storage.hash_file(settings.train_file))
        encoded = Examples(
            tagger.windows_of(sentences["train_file"]),
            windows.TRAINING_SCHEMA,
        )

    def evaluate(trainer: Trainer) -> tuple[dict[str, float], dict]:
        file = sentences["eval_file"]
        gold = [sentence.labels for sentence in file]
        _warn_unknown(gold, labels)
        size = settings.eval_batch_size
        guesses, answers = answer(trainer, "eval_file", size, "evaluated")
        result = scoring.score(gold, guesses, answers, is_entities)
        metrics = {f"eval_{name}": value for name, value in result.items()}
        described = report(file, guesses, answers, labels)
        path = settings.eval_file or settings.train_file
        return metrics, described | {"records": path}

    def predict(trainer: Trainer) -> list[str]:
        if not settings.do_predict:
            return []
        size = settings.predict_batch_size
        guesses, _ = answer(trainer, "predict_file", size, "predicted")
        path = folder.file("predictions.conll")
        conll.write_predictions(
            settings.predict_file,
            path,
            sentences["predict_file"],
            guesses,
        )
        return [path]

    def sample() -> list[Row]:
        """Tokenized texts of training, else of evaluation."""
        texts = sentences.get("train_file") or sentences["eval_file"]
        return rows_of(tagger.windows_of(texts))

    return Task(
        "ner",
        lambda: task_models.build_token_classifier(
            model.config, len(labels), settings.random_seed
        ),
        (task_losses.TOKEN,),
        task_losses.token_weights,
        task_losses.token_sums,
        finetuning.schedule(settings, len(encoded or ())),
        records=finetuning.describe(encoded, records),
        metric="eval_f1" if is_entities else "eval_accuracy",
        examples=encoded,
        labels={
            "kind": kind,
            "labels": labels,
            "doc_stride": settings.doc_stride,
            "document_context": settings.document_context,
        },
        validate=lambda trainer: evaluate(trainer)[0],
        evaluate=evaluate,
        predict=predict,
        sample=sample,
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
        guesses: the predicted labels of each sentence.
        answers: label, loss and probability of each word.
        labels: the labels of the task.
    """
    words = [
        (sentence, *word)
        for sentence, predicted in zip(sentences, guesses)
        for word in zip(
            sentence.lines, sentence.words, sentence.labels, predicted
        )
    ]

    # Labels that are not in the training data count as errors.
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
        "references": class_report.baselines_of_classes(
            gold, len(names), "eval_accuracy", "eval_loss"
        ),
        **class_report.of_classes(gold, predicted, names),
        "worst_errors": class_report.worst(errors),
    }


def _warn_unknown(gold: list[list[str]], labels: list[str]) -> None:
    unknown = {y for x in gold for y in x} - set(labels)
    if unknown:
        log(
            "warning: labels that are not in the training data count as "
            f"errors: {', '.join(sorted(unknown))[:80]}"
        )
