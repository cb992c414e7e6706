"""Fine-tuning, evaluation, prediction and export of run_ner.py."""

import itertools
from collections.abc import Iterable, Iterator

import numpy as np

from bert.common.progress import say
from bert.data import features
from bert.data.records import example_files
from bert.modeling import task_losses, task_models
from bert.modeling.formats.model_folder import ModelFolder
from bert.serving import graphs
from bert.tasks import (
    class_report,
    finetuning_run,
    records,
    run_folder,
    training_run,
)
from bert.tasks.ner import conll, entities, export, windows
from bert.tasks.ner import metrics as scoring
from bert.tasks.ner.entities import ENTITIES
from bert.tasks.ner.settings import Settings


class Labelling:
    """Labelling of words, a task for `tasks.finetuning_run.run`.

    Args:
        settings: settings of the script.
        model: from `finetuning.check`.
        folder: the folder of the run.
        sentences: flag of a file -> its sentences.
        kind, labels: from `labels.find`.

    Attributes:
        tuning: the `finetuning_run.FineTuningRun`.
        report: see `finetuning_run.FineTuningTask`.
    """

    def __init__(
        self,
        settings: Settings,
        model: ModelFolder,
        folder: run_folder.RunFolder,
        sentences: dict[str, list[conll.Sentence]],
        kind: str,
        labels: list[str],
    ):
        self._settings, self._model = settings, model
        self._sentences, self.report = sentences, {}
        self._kind, self._labels = kind, labels
        self._tuning_settings = tuning = settings.tuning
        tokenizer = model.tokenizer.exact
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
        self._folder, count, data = folder, 0, ""
        self._train_path = folder.file("train.tf_record")
        if "train_file" in sentences:
            data = records.of_training(folder.shared, settings.train_file)
            count = records.make(
                settings,
                self._train_path,
                settings.train_file,
                sentences["train_file"],
                lambda: self._featurizer.featurize(sentences["train_file"]),
                windows.TRAINING_SCHEMA,
                model.tokenizer,
                kind=kind,
                labels=labels,
            )
        self.tuning = finetuning_run.FineTuningRun(
            settings,
            folder,
            model,
            training_run.TrainingTask(
                lambda: task_models.build_token_classifier(
                    model.config, len(self._labels), tuning.training.random_seed
                ),
                (task_losses.TOKEN,),
                task_losses.token_weights,
                task_losses.token_sums,
                records=data,
                labels={"kind": kind, "labels": labels},
            ),
            count,
        )

    def train(self) -> str:
        """Trains; returns the prefix of the last checkpoint."""
        metric = "f1" if self._kind == ENTITIES else "accuracy"
        examples = example_files.load(
            self._train_path,
            windows.TRAINING_SCHEMA,
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
        path = self._folder.file("predictions.conll")
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
        labeller = export.Labeller(
            self._model,
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
        class_report.log_one_answer([guess for *_, guess in words])
        return {
            "task": "ner",
            "records": self._settings.eval_file,
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
