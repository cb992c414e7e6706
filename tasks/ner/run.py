"""Fine-tuning, evaluation, prediction and export of run_ner.py."""

import dataclasses
import itertools
import os
from collections.abc import Iterable, Iterator

from common.errors import UserError
from common.progress import say
from data import features
from modeling.formats import model_folder
from tasks import (
    class_report,
    finetuning,
    output_dir,
    records,
    training_run,
)
from tasks.ner import conll, entities, windows
from tasks.ner import metrics as scoring
from tasks.ner.entities import ANY, ENTITIES
from tasks.ner.settings import Settings


def find_labels(
    settings: Settings, sentences: dict[str, list[conll.Sentence]]
) -> tuple[str, list[str]]:
    """Determines the labels, and converts entity labels to BIO.

    Args:
        settings: settings of the script.
        sentences: flag of a file -> its sentences; entries are replaced.

    Returns:
        kind of the labels and their names.

    Raises:
        UserError: if the labels are unknown, or differ from those of the run.
    """
    task = recorded_task(settings)
    kind = task["kind"] if task else settings.label_kind
    for name, some in sentences.items():
        if name == "predict_file" or kind == ANY:
            continue
        path = getattr(settings, name)
        marked = conll.has_entities(some, path)
        if not marked and kind == ENTITIES:
            raise UserError(
                f"labels such as {some[0].labels[0]!r}",
                path=path,
                line=some[0].line,
                expected="O, or B- or I- and a type",
                fix="see --label_kind and --label_column",
            )
        kind = ENTITIES if marked else ANY
        if marked:
            sentences[name] = [
                dataclasses.replace(x, labels=entities.to_bio(x.labels))
                for x in some
            ]
    if "train_file" not in sentences:
        if task is None:
            raise UserError(
                "unknown labels",
                path=settings.tuning.training.output_dir,
                expected=f"{model_folder.TASK} of a trained model",
                fix="pass --do_train, or the --output_dir of a training run",
            )
        return kind, task["labels"]
    found = {y for x in sentences["train_file"] for y in x.labels}
    labels = sorted(found)
    if kind == ENTITIES:
        labels = entities.bio_labels(
            label[2:] for label in found if label != entities.OUTSIDE
        )
    _check_recorded(settings.tuning.training.output_dir, task, labels)
    return kind, labels


def recorded_task(settings: Settings) -> dict | None:
    """Reads the labels of the run in output_dir, or of the checkpoint."""
    training, task = settings.tuning.training, None
    path = training.output_dir
    if output_dir.has_checkpoint(path):
        task = model_folder.recorded_task(path)
    if not task and training.model.init_checkpoint and not training.do_train:
        path = training.model.init_checkpoint
        task = model_folder.task_of(path)
    if task and not (task["kind"] in (ENTITIES, ANY) and task["labels"]):
        raise UserError(
            f"its {model_folder.TASK} was not written by run_ner.py",
            path=path,
            expected="labels of words",
            fix="pass another folder",
        )
    return task


def _check_recorded(folder: str, task: dict | None, labels: list[str]) -> None:
    """Rejects a folder with checkpoints for other labels."""
    if task and task["labels"] != labels:
        raise UserError(
            f"holds a run with {len(task['labels'])} labels: "
            f"{', '.join(task['labels'])[:80]}",
            path=folder,
            expected=f"{len(labels)}: {', '.join(labels)[:80]}",
            fix="pass another --output_dir",
        )


class Labelling:
    """Labelling of words, a task for `tasks.finetuning.run`.

    Args:
        settings: settings of the script.
        setup: from `finetuning.check`.
        sentences: flag of a file -> its sentences.
        kind, labels: from `find_labels`.

    Attributes:
        tuning: the `finetuning.FineTuningRun`.
        report: see `finetuning.FineTuningTask`.
    """

    def __init__(
        self,
        settings: Settings,
        setup: finetuning.Setup,
        sentences: dict[str, list[conll.Sentence]],
        kind: str,
        labels: list[str],
    ):
        from data.text import tokenization
        from modeling import task_losses, task_models

        self._settings, self._setup = settings, setup
        self._sentences, self.report = sentences, {}
        self._kind, self._labels = kind, labels
        self._tuning_settings = tuning = settings.tuning
        tokenizer = tokenization.FullTokenizer(*tuning.text.tokenizer_arguments)
        self._featurizer = windows.Featurizer(
            lambda word: tokenizer.convert_tokens_to_ids(
                tokenizer.tokenize(word)
            ),
            tokenizer.vocab,
            {label: i for i, label in enumerate(self._labels)},
            tuning.max_seq_length,
            settings.doc_stride,
            settings.document_context,
        )
        folder, count, data = tuning.training.output_dir, 0, ""
        self._train_path = os.path.join(folder, "train.tf_record")
        if "train_file" in sentences:
            data = records.of_training(folder, settings.train_file)
            count = records.make(
                settings,
                self._train_path,
                settings.train_file,
                sentences["train_file"],
                lambda: self._featurizer.featurize(sentences["train_file"]),
                windows.training_schema(),
                kind=kind,
                labels=labels,
            )
        self.tuning = finetuning.FineTuningRun(
            settings,
            setup,
            training_run.TrainingTask(
                lambda: task_models.build_token_classifier(
                    setup.config, len(self._labels), tuning.training.random_seed
                ),
                (task_losses.TOKEN,),
                task_losses.token_weights,
                task_losses.token_sums,
                records=data,
            ),
            count,
        )

    def start(self) -> None:
        """Loads the initial weights and prepares output_dir."""
        self.tuning.start()
        folder = self._tuning_settings.training.output_dir
        task = {"kind": self._kind, "labels": self._labels}
        model_folder.write_task(folder, task)

    def train(self) -> str:
        """Trains; returns the prefix of the last checkpoint."""
        from data.records import example_files

        metric = "f1" if self._kind == ENTITIES else "accuracy"
        examples = example_files.load(
            self._train_path,
            windows.training_schema(),
            self._tuning_settings.max_seq_length,
        )
        return self.tuning.train(examples, self.evaluate, f"eval_{metric}")

    def evaluate(self) -> dict[str, float]:
        """Scores the predictions for --eval_file."""
        sentences = self._sentences["eval_file"]
        gold = [x.labels for x in sentences]
        self._warn_unknown(gold)
        answers = list(
            self._answers(
                sentences,
                self._tuning_settings.training.eval_batch_size,
                "evaluated",
            )
        )
        guesses = self._by_sentence(sentences, (x[0] for x in answers))
        score = scoring.score_labels
        if self._kind == ENTITIES:
            score = scoring.score_entities
        result = score(gold, guesses)
        result["loss"] = sum(x[1] for x in answers) / len(answers)
        self.report = self._report(sentences, guesses, answers)
        return {f"eval_{name}": value for name, value in result.items()}

    def predict(self) -> list[str]:
        """Writes --predict_file with a column of predicted labels."""
        settings, tuning = self._settings, self._tuning_settings
        if not tuning.do_predict:
            return []
        sentences = self._sentences["predict_file"]
        answers = self._answers(
            sentences, tuning.predict_batch_size, "predicted"
        )
        labels = self._by_sentence(sentences, (x[0] for x in answers))
        path = os.path.join(tuning.training.output_dir, "predictions.conll")
        columns = conll.Columns(settings.word_column, None)
        conll.write_predictions(
            settings.predict_file,
            path,
            columns,
            itertools.chain.from_iterable(labels),
        )
        return [path]

    def save_model(self, folder: str) -> None:
        """Writes a SavedModel."""
        from serving import graphs
        from tasks.ner import export

        labeller = export.Labeller(
            self._setup.config,
            self._settings,
            self._labels,
            self._kind == ENTITIES,
            self.tuning.weights(),
        )
        graphs.save(labeller, folder, "words")

    def _answers(
        self, sentences: list[conll.Sentence], batch_size: int, what: str
    ) -> Iterator[tuple[str, float, float]]:
        """Yields the prediction for each word.

        Yields:
            the label, the loss of the gold label, the label's probability.
        """
        import numpy as np

        examples = [*self._featurizer.featurize(sentences)]
        outputs = self.tuning.predict(examples, batch_size, what, len(examples))
        for example, output in zip(examples, outputs):
            positions = np.flatnonzero(example[features.LABEL_WEIGHTS])
            logits = output["logits"][positions].astype(np.float64)
            logits -= logits.max(-1, keepdims=True)
            losses = np.log(np.exp(logits).sum(-1))
            gold = np.array(example[features.LABEL_IDS])[positions]
            losses -= np.take_along_axis(logits, gold[:, None], -1)[:, 0]
            best = np.exp(logits).max(-1) / np.exp(logits).sum(-1)
            for i, *rest in zip(logits.argmax(-1), losses, best):
                yield self._labels[i], *map(float, rest)

    def _report(
        self, sentences: list[conll.Sentence], guesses: list, answers: list
    ) -> dict:
        """Reports on labelled words, for `eval_report.write`."""
        words = [
            (sentence, *pair)
            for sentence, labels in zip(sentences, guesses)
            for pair in zip(sentence.words, sentence.labels, labels)
        ]
        names = list(self._labels)
        names += sorted({label for *_, label, _ in words} - set(names))
        number = {name: i for i, name in enumerate(names)}
        gold, found = ([number[word[i]] for word in words] for i in range(2, 4))
        class_report.log_one_answer(found, names)
        return {
            "task": "ner",
            "references": class_report.references_of_classes(
                gold, len(names), "eval_accuracy", "eval_loss"
            ),
            **class_report.of_classes(gold, found, names),
            "worst_errors": class_report.worst(
                {
                    "text": [" ".join(sentence.words), word],
                    "label": label,
                    "predicted": guess,
                    "probability": probability,
                }
                for (sentence, word, label, guess), (*_, probability) in zip(
                    words, answers
                )
                if label != guess
            ),
        }

    def _by_sentence(
        self, sentences: list[conll.Sentence], labels: Iterable[str]
    ) -> list[list[str]]:
        """Groups labels by sentence; entity labels become valid BIO."""
        labels = iter(labels)
        found = [
            list(itertools.islice(labels, len(x.words))) for x in sentences
        ]
        if self._kind == ENTITIES:
            return [entities.to_bio(x) for x in found]
        return found

    def _warn_unknown(self, gold: list[list[str]]) -> None:
        unknown = {y for x in gold for y in x} - set(self._labels)
        if unknown:
            say(
                "warning: labels that are not in the training data count as "
                f"errors: {', '.join(sorted(unknown))[:80]}"
            )
