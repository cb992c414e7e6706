"""The task of run_swag.py: multiple choice."""

from collections.abc import Iterable, Iterator

import numpy as np

from bert.common.atomic import write_whole
from bert.common.progress import log
from bert.data.postprocessing import softmax
from bert.data.records.examples import Examples
from bert.data.sequences import Row
from bert.data.tables import Table
from bert.modeling import task_losses, task_models
from bert.tasks import class_report, eval_report, finetuning
from bert.tasks.run_folder import RunFolder
from bert.tasks.swag.examples import ChoiceExample
from bert.tasks.swag.pipeline import MultipleChoice, training_schema
from bert.tasks.swag.settings import KIND
from bert.training.task import Task
from bert.training.trainer import Trainer


def make_task(
    folder: RunFolder,
    tables: dict[str, Table],
) -> Task:
    """Encodes the examples, and makes the task for training.

    Args:
        settings: the settings of the script.
        model: the initial model, with config and tokenizer.
        folder: the folder of the run.
        tables: flag of a file -> its examples.

    Raises:
        UserError: there are too few examples for one step, or the folder
            holds a run with other training data.
    """
    settings, model = folder.settings, folder.model
    # C is the maximum number of choices over all files.
    choices = max(
        (len(x.choices) for table in tables.values() for x in table.rows),
        default=2,
    )
    choice_task = MultipleChoice(model.tokenizer, settings.max_seq_length)

    def rows_of(flag: str) -> Iterator[dict]:
        return (choice_task.features(x, choices) for x in tables[flag].rows)

    encoded, records = None, ""
    if "train_file" in tables:
        records = folder.identify(tables["train_file"].sha256)
        encoded = Examples(
            rows_of("train_file"), training_schema(choices), choices
        )
        if choice_task.num_truncated:
            log(
                f"{choice_task.num_truncated:,} choices of "
                f"{settings.train_file} were truncated to "
                f"{settings.max_seq_length} tokens; see --max_seq_length"
            )

    def answers(
        trainer: Trainer, flag: str, batch_size: int, description: str
    ) -> Iterator[tuple[ChoiceExample, np.ndarray]]:
        """Yields each example of a file, with its probabilities."""
        outputs = trainer.predict(
            rows_of(flag),
            batch_size,
            description,
            len(tables[flag].rows),
            choices,
        )
        for example, output in zip(tables[flag].rows, outputs, strict=True):
            logits = output["logits"][: len(example.choices)]
            yield example, softmax(logits.astype(np.float64))

    def evaluate(trainer: Trainer) -> tuple[dict[str, float], dict]:
        size = settings.eval_batch_size
        metrics, report = score(
            [*answers(trainer, "eval_file", size, "evaluated")]
        )
        path = settings.eval_file or settings.train_file
        return metrics, report | {"records": path}

    def predict(trainer: Trainer) -> list[str]:
        if not settings.do_predict:
            return []
        path = folder.file("predictions.tsv")
        size = settings.predict_batch_size
        answered = answers(trainer, "predict_file", size, "predicted")
        write_predictions(path, (x for _, x in answered))
        return [path]

    def sample() -> list[Row]:
        """Tokenized texts of training, else of evaluation."""
        table = tables.get("train_file") or tables["eval_file"]
        encoded = choice_task.encode([x.texts() for x in table.rows])
        return [row for x in encoded for row in x.rows]

    return Task(
        "swag",
        lambda: task_models.build_choice_model(
            model.config, settings.random_seed
        ),
        (task_losses.CHOICE,),
        task_losses.choice_weights,
        task_losses.choice_sums,
        finetuning.schedule(settings, len(encoded or ())),
        records=finetuning.describe(encoded, records),
        metric="eval_accuracy",
        examples=encoded,
        labels={"kind": KIND, "labels": []},
        validate=lambda trainer: evaluate(trainer)[0],
        evaluate=evaluate,
        predict=predict,
        sample=sample,
    )


def score(
    answers: list[tuple[ChoiceExample, np.ndarray]],
) -> tuple[dict[str, float], dict]:
    """Computes accuracy and loss, with baselines.

    Args:
        answers: the labelled examples, each with its probabilities, float64
            [choices].

    Returns:
        the metrics, and a report for `eval_report.write`.
    """
    hits, loss, wrong = 0, 0.0, []

    # Avoids the logarithm of 0.
    tiny = np.finfo(np.float64).tiny
    for example, probabilities in answers:
        best = int(probabilities.argmax())
        hits += best == example.label
        loss -= float(np.log(probabilities[example.label] + tiny))
        if best != example.label:
            wrong.append(
                {
                    "line": example.line,
                    "text": [example.context, *example.choices],
                    "label": example.choices[example.label],
                    "predicted": example.choices[best],
                    "probability": float(probabilities[best]),
                }
            )

    count = len(answers)
    metrics = {"eval_accuracy": hits / count, "eval_loss": loss / count}

    # Chance is a mean, as examples may have different numbers of choices.
    chances = [1 / len(example.choices) for example, _ in answers]
    positions = np.bincount([example.label for example, _ in answers])
    majority = float(positions.max() / count)
    baselines = {
        f"eval_accuracy/{eval_report.CHANCE}": float(np.mean(chances)),
        f"eval_accuracy/{eval_report.MAJORITY}": majority,
        f"eval_loss/{eval_report.CHANCE}": -float(np.mean(np.log(chances))),
    }
    return metrics, {
        "task": "swag",
        "references": baselines,
        "worst_errors": class_report.worst(wrong),
    }


def write_predictions(path: str, answers: Iterable[np.ndarray]) -> None:
    """Writes the index of the best choice and the probabilities of all.

    Args:
        path: str. File to write, one line per example, tab-separated.
        answers: the probabilities of each example, float64 [choices].
    """
    lines = []
    for probabilities in answers:
        fields = [str(probabilities.argmax())]
        fields += [f"{x:.6f}" for x in probabilities]
        lines.append("\t".join(fields) + "\n")
    write_whole(path, "".join(lines))
