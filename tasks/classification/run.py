"""A run of run_classifier.py: training, scores, answers, the export.

It is wiring: records -> `finetuning` -> logits -> files.
"""

import dataclasses
import json
import os
import statistics

import numpy as np
from absl import flags

from common.progress import say
from common.storage import write_whole
from data import features
from serving import export_folder
from tasks import finetuning, output_dir
from tasks.classification import answers, examples, inputs, metrics
from tasks.classification.examples import CLASSES, MULTI_LABEL, REGRESSION
from tasks.classification.inputs import DEV, TEST, TRAIN


@dataclasses.dataclass(frozen=True)
class Job:
    """What the command line asks for, checked.

    Attributes:
        argv: the command line, for the runs of several seeds.
        flags: read from it.
        setup: the network's config and more.
        data: the files.
        weights: of the hub module: original name -> array.
    """

    argv: list[str]
    flags: flags.FlagValues
    setup: finetuning.Setup
    data: inputs.Data
    weights: dict | None = None


class Classification:
    """A run of one seed.

    Args:
        job: what is asked for.
        values: flags of this run: its seed and folder.

    Attributes:
        folder: of this run.
        tuning: `finetuning.FineTuning`.
    """

    def __init__(self, job: Job, values: flags.FlagValues):
        from modeling import losses, models

        self._job, self._values, self._data = job, values, job.data
        self.folder = values.output_dir
        labels = self._data.labels
        sums = {
            CLASSES: losses.class_sums,
            MULTI_LABEL: losses.multi_label_sums,
            REGRESSION: losses.number_sums,
        }
        is_number = labels.kind == REGRESSION
        measures = ("loss",) if is_number else ("loss", "accuracy")
        self.tuning = finetuning.FineTuning(
            values,
            job.setup,
            finetuning.Task(
                lambda: models.build_classifier(
                    job.setup.config, labels.size, values.random_seed
                ),
                (losses.LABELS,),
                losses.label_weights,
                sums[labels.kind],
                sum(part.count for part in self._data.of(TRAIN)),
                measures=measures,
            ),
        )

    def start(self) -> None:
        """Finds the weights to start from and prepares the folder."""
        values = self._values
        self.tuning.start(
            self._job.weights, values.bert_hub_module_handle or ""
        )
        described = json.dumps(self._data.describe(), indent=2) + "\n"
        for folder in {self.folder, self._job.flags.output_dir}:
            output_dir.prepare(
                folder, self._job.setup.config, values.vocab_file
            )
            write_whole(os.path.join(folder, "task.json"), described)

    def train(self, records: dict) -> str:
        """Trains; returns the prefix of the checkpoint."""
        from data.records import example_files

        values, data = self._values, self._data
        (part,) = data.of(TRAIN)
        rows = inputs.rows(self._job.flags, data, records[part])
        held_out = None
        if values.eval_steps and data.of(DEV):
            dev = data.of(DEV)[0]
            held_out = lambda: self.evaluate(dev, records[dev])  # noqa: E731
        return self.tuning.train(
            example_files.Rows(rows, inputs.schema(data.labels)),
            held_out,
            f"eval_{data.metrics[0]}" if held_out else None,
        )

    def evaluate_all(self, records: dict) -> dict[str, float]:
        """Scores of all parts with labels that are held out."""
        result = {}
        for part in self._data.of(DEV):
            result |= self.evaluate(part, records[part])
        return result

    def evaluate(self, part, path: str) -> dict[str, float]:
        """Scores and losses of a part with labels."""
        data, batch_size = self._data, self._values.eval_batch_size
        labels, logits = self._logits(part, path, batch_size, "evaluated")
        losses = metrics.losses(logits, labels, data.labels.kind)
        batches = [
            losses[i : i + batch_size].mean()
            for i in range(0, len(losses), batch_size)
        ]
        found = metrics.answers(logits, data.labels.kind)
        result = metrics.scores(data.metrics, labels, found)
        result["loss"] = float(losses.mean())
        prefix = f"eval_{part.name}{'_' if part.name else ''}"
        result = {f"{prefix}{name}": x for name, x in result.items()}
        if not part.name:  # what Estimator calls so: the mean over batches
            result["loss"] = sum(map(float, batches)) / len(batches)
        return result

    def predict(self, part, path: str):
        """Logits of a part, float32 [N, C]; its labels, None if some lack."""
        labels, logits = self._logits(
            part, path, self._values.predict_batch_size, "predicted"
        )
        return logits, labels if part.is_labelled else None

    def _logits(self, part, path, batch_size, what):
        labels = []

        def rows():
            for row in inputs.rows(self._job.flags, self._data, path):
                labels.append(row[features.LABEL_IDS])
                yield row

        outputs = self.tuning.predict(rows(), batch_size, what, part.count)
        logits = np.stack([output["logits"] for output in outputs])
        assert len(logits) == part.count, (len(logits), part.count)
        stacked = np.stack(labels)
        several = self._data.labels.kind == MULTI_LABEL
        return stacked if several else stacked[:, 0], logits


def write_predictions(job: Job, run: Classification, records: dict) -> list:
    """Writes what --do_predict asks for; returns the paths."""
    values, data, wrote = job.flags, job.data, []
    for part in data.of(TEST):
        logits, labels = run.predict(part, records[part])
        ids = [
            example.id
            for example in examples.examples(part.source, data.labels)
        ]
        stem = os.path.join(values.output_dir, "test_results")
        path = part.file(stem, ".tsv")
        answers.write_test_results(path, logits, data.labels)
        wrote.append(path)
        path = part.file(os.path.join(values.output_dir, "predictions"), ".tsv")
        answers.write_predictions(path, ids, logits, data.labels)
        wrote.append(path)
        if values.glue_dir and part.submission:
            wrote.append(
                answers.write_submission(
                    values.glue_dir, part.submission, ids, logits, data.labels
                )
            )
        if labels is not None:
            found = metrics.answers(logits, data.labels.kind)
            scores = metrics.scores(data.metrics, labels, found)
            shown = " | ".join(f"{k} {v:.4f}" for k, v in scores.items())
            say(f"{part.source.path} | {shown}")
    return wrote


def export(job: Job, run: Classification) -> str:
    """Writes the SavedModel, whole or not at all."""
    from tasks.classification import export as classifier

    values, data = job.flags, job.data
    settings = classifier.Settings(
        job.setup.config,
        data.labels,
        values.vocab_file,
        values.do_lower_case,
        values.strip_accents,
        values.max_seq_length,
        data.has_pairs,
        values.export_precision,
    )
    return export_folder.write(
        values.export_dir,
        lambda folder: classifier.save(
            classifier.Classifier(settings, run.tuning.weights()), folder
        ),
    )


def summarize(results: list[dict[str, float]]) -> dict[str, float]:
    """Means over seeds and, of scores, their standard deviations."""
    summary = {}
    for name in results[0]:
        found = [result[name] for result in results]
        summary[name] = statistics.fmean(found)
        if len(found) > 1 and name.startswith("eval_"):
            summary[f"{name}_std"] = statistics.stdev(found)
    return summary
