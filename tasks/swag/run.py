"""Fine-tuning, evaluation, prediction and export of run_swag.py."""

from collections.abc import Iterator

import numpy as np

from bert.common.progress import say
from bert.common.storage import write_whole
from bert.data.records import example_files
from bert.data.text import vocabulary
from bert.modeling import task_losses, task_models
from bert.modeling.formats.model_folder import ModelFolder
from bert.serving import graphs
from bert.tasks import (
    class_report,
    eval_report,
    finetuning_run,
    records,
    run_folder,
    training_run,
)
from bert.tasks.swag import examples as swag
from bert.tasks.swag import export
from bert.tasks.swag.settings import Settings


class Choosing:
    """Multiple choice, a task for `tasks.finetuning_run.run`.

    Args:
        settings: settings of the script.
        model: from `finetuning.check`.
        folder: the folder of the run.
        examples: flag of a file -> its examples.

    Attributes:
        tuning: the `finetuning_run.FineTuningRun`.
        report: see `finetuning_run.FineTuningTask`.
    """

    def __init__(
        self,
        settings: Settings,
        model: ModelFolder,
        folder: run_folder.RunFolder,
        examples: dict[str, list[swag.ChoiceExample]],
    ):
        self._settings, self._model = settings, model
        self._examples, self.report = examples, {}
        self._tuning_settings = tuning = settings.tuning
        self._choices = max(
            (len(x.choices) for some in examples.values() for x in some),
            default=2,
        )
        tokenizer = model.tokenizer.exact
        self._featurizer = swag.Featurizer(
            lambda text: tokenizer.convert_tokens_to_ids(
                tokenizer.tokenize(text)
            ),
            tokenizer.vocab[vocabulary.CLS],
            tokenizer.vocab[vocabulary.SEP],
            tokenizer.vocab[vocabulary.UNK],
            tuning.max_seq_length,
            self._choices,
        )
        self._folder, count, data = folder, 0, ""
        self._train_path = folder.file("train.tf_record")
        if "train_file" in examples:
            data = records.of_training(folder.shared, settings.train_file)
            count = records.make(
                settings,
                self._train_path,
                settings.train_file,
                examples["train_file"],
                lambda: self._featurize("train_file"),
                swag.training_schema(self._choices),
                model.tokenizer,
                self._choices,
                choices_of_all_files=self._choices,
            )
            self._report_truncated("train_file")
        self.tuning = finetuning_run.FineTuningRun(
            settings,
            folder,
            model,
            training_run.TrainingTask(
                lambda: task_models.build_choice_model(
                    model.config, tuning.training.random_seed
                ),
                (task_losses.CHOICE,),
                task_losses.choice_weights,
                task_losses.choice_sums,
                records=data,
            ),
            count,
            self._choices,
        )

    def train(self) -> str:
        """Trains; returns the prefix of the last checkpoint."""
        examples = example_files.load(
            self._train_path,
            swag.training_schema(self._choices),
            self._tuning_settings.max_seq_length,
            self._choices,
        )
        return self.tuning.train(examples, self.evaluate, "eval_accuracy")

    def evaluate(self) -> dict[str, float]:
        """Computes accuracy and loss on --eval_file."""
        examples = self._examples["eval_file"]
        found = self._probabilities(
            "eval_file",
            self._tuning_settings.training.eval_batch_size,
            "evaluated",
        )
        hits, loss, wrong = 0, 0.0, []
        for example, probabilities in zip(examples, found, strict=True):
            best = int(probabilities.argmax())
            hits += best == example.label
            tiny = np.finfo(np.float64).tiny
            loss -= float(np.log(probabilities[example.label] + tiny))
            if best != example.label:
                wrong.append(
                    {
                        "text": [example.context, *example.choices],
                        "label": example.choices[example.label],
                        "predicted": example.choices[best],
                        "probability": float(probabilities[best]),
                    }
                )
        chances = [1 / len(x.choices) for x in examples]
        positions = np.bincount([x.label for x in examples])
        self.report = {
            "task": "swag",
            "records": self._settings.eval_file,
            "references": {
                f"eval_accuracy/{eval_report.CHANCE}": float(np.mean(chances)),
                f"eval_accuracy/{eval_report.MAJORITY}": float(
                    positions.max() / len(examples)
                ),
                f"eval_loss/{eval_report.CHANCE}": -float(
                    np.mean(np.log(chances))
                ),
            },
            "worst_errors": class_report.worst(wrong),
        }
        return {
            "eval_accuracy": hits / len(examples),
            "eval_loss": loss / len(examples),
        }

    def predict(self) -> list[str]:
        """Writes the best choice and all probabilities for --predict_file."""
        tuning = self._tuning_settings
        if not tuning.do_predict:
            return []
        path = self._folder.file("predictions.tsv")
        found = self._probabilities(
            "predict_file", tuning.predict_batch_size, "predicted"
        )
        write_predictions(path, (x.tolist() for x in found))
        return [path]

    def save_model(self, folder: str) -> None:
        """Writes a SavedModel."""
        chooser = export.Chooser(
            self._model, self._tuning_settings, self.tuning.weights()
        )
        graphs.save(chooser, folder)

    def _featurize(self, name: str) -> Iterator[dict]:
        return map(self._featurizer.featurize, self._examples[name])

    def _probabilities(self, name: str, batch_size: int, what: str):
        """Yields float64 [choices], the probabilities of each example."""
        examples = self._examples[name]
        outputs = self.tuning.predict(
            self._featurize(name), batch_size, what, len(examples)
        )
        for example, output in zip(examples, outputs, strict=True):
            logits = output["logits"][: len(example.choices)]
            powers = np.exp((logits - logits.max()).astype(np.float64))
            yield powers / powers.sum()

    def _report_truncated(self, name: str) -> None:
        count = self._featurizer.truncated
        if count:
            path = getattr(self._settings, name)
            limit = self._tuning_settings.max_seq_length
            say(
                f"{count:,} choices of {path} were truncated to {limit} "
                "tokens; see --max_seq_length"
            )


def write_predictions(path: str, found: Iterator[list[float]]) -> None:
    """Writes the index of the best choice and the probabilities of all.

    Args:
        path: file to write, one line per example, with tabs between fields.
        found: the probabilities of each example.
    """
    lines = []
    for probabilities in found:
        best = max(range(len(probabilities)), key=probabilities.__getitem__)
        fields = [str(best), *(f"{x:.6f}" for x in probabilities)]
        lines.append("\t".join(fields) + "\n")
    write_whole(path, "".join(lines))
